"""Modules of the team in folders below the program."""

from platform_team.claims import make_job

GPUS = 2

make_job("train", GPUS)
