"""Drivers of hardware, real and simulated, behind `BackEnd`; each is loaded when it is asked for."""
