"""`dra-infra-plugin sim`: says what happens to simulated devices, in the file that the plugin looks at."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from dra_infra.errors import PluginError
from dra_infra.plugin.back_ends import sim_commands
from dra_infra.plugin.back_ends.sim_commands import EVERY, Commands, read_commands, write_commands
from dra_infra.plugin.command.back_end_loading import driver_name
from dra_infra.plugin.command.command_line import parse
from dra_infra.plugin.command.instance import Paths
from dra_infra.plugin.command.settings import all_settings
from dra_infra.plugin.command.settings_reading import read_settings

_ABOUT: Final = """Say what happens to simulated devices.

It is written to the file of the setting --sim-commands; where none is given, to that of the plugin with the settings
of the environment, as in its container: kubectl exec POD -- dra-infra-plugin sim fail gpu-3 --xid 79
"""
_VARIABLE: Final = next(each.variable for each in all_settings() if each.name == "sim_commands")


def run_sim(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Change the commands and print them.

    Raises:
        PluginError: `sim-commands-malformed`, `plugin-folder-not-usable`, `plugin-setting-missing`.
    """
    parser = _parser()
    options = parser.parse_args(list(words))
    if options.action == "disturb" and not (options.seconds or options.error):
        parser.error("disturb: give --seconds, --error, or both: else nothing is disturbed")
    file = _file(options.file, environment)
    commands = read_commands(file)
    changed = _changed(commands, options)
    if changed != commands:
        write_commands(file, changed)
    sys.stdout.write(changed.model_dump_json(by_alias=True, exclude_defaults=True, indent=1) + "\n")
    return 0


def _changed(commands: Commands, options: argparse.Namespace) -> Commands:
    match options.action:
        case "fail":
            return sim_commands.fail(commands, options.device, xid=options.xid, message=options.message)
        case "withdraw":
            return sim_commands.withdraw(commands, options.device)
        case "heal":
            return sim_commands.heal(commands, options.device)
        case "disturb":
            chosen = {name: getattr(options, name) for name in ("claim", "device", "seconds", "error")}
            return sim_commands.disturb(commands, **chosen)
        case "hold":
            return sim_commands.hold(commands, options.device)
        case "unhold":
            return sim_commands.unhold(commands, options.device)
        case "bind":
            return sim_commands.bind(commands, options.claim, device=options.device, failed=options.failed)
    return commands


def _file(given: str | None, environment: Mapping[str, str]) -> Path:
    named = given or environment.get(_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    line = parse([], environment)
    try:
        settings, _ = read_settings(line.flags, line.unknown, environment, line.file)
    except PluginError as error:
        raise PluginError.of(
            path="--file",
            code="plugin-setting-missing",
            message="is not given, and the environment has no settings of a plugin",
            hint=f"give --file or the variable {_VARIABLE}, or run it in the plugin's container",
        ) from error
    return Paths.of(settings, driver_name(settings)).commands


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dra-infra-plugin sim",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--file", metavar="FILE", help=f"the file [{_VARIABLE}]")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, text: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=text, description=text, parents=[common], allow_abbrev=False)

    fail = action("fail", "A device becomes unhealthy: with an XID, or lost.")
    fail.add_argument("device", metavar="DEVICE")
    fail.add_argument("--xid", type=int, metavar="NUMBER", help="NVIDIA's number of the error")
    fail.add_argument("--message", default="", metavar="TEXT", help="for the status of pods")
    withdraw = action("withdraw", "A device is gone: published no more, and not prepared.")
    withdraw.add_argument("device", metavar="DEVICE")
    heal = action("heal", "A device is as it was; without a name all are, and preparing is.")
    heal.add_argument("device", nargs="?", default=EVERY, metavar="DEVICE")
    disturb = action("disturb", "Preparing takes longer, or fails.")
    disturb.add_argument("--claim", default="", metavar="NAMESPACE/NAME", help="for this claim, or its UID")
    disturb.add_argument("--device", default="", metavar="DEVICE", help="for this device")
    disturb.add_argument(
        "--seconds", type=float, default=0.0, metavar="NUMBER", help="how much longer it takes"
    )
    disturb.add_argument("--error", default="", metavar="TEXT", help="what it fails with")
    hold = action("hold", "Pods that get the device wait until it is bound; without a name, any device.")
    hold.add_argument("device", nargs="?", default=EVERY, metavar="DEVICE")
    unhold = action("unhold", "Pods wait for the device no more; without a name, for none.")
    unhold.add_argument("device", nargs="?", default=EVERY, metavar="DEVICE")
    bind = action("bind", "A claim's devices are bound, or never will be.")
    bind.add_argument("claim", metavar="NAMESPACE/NAME", help="the claim, or its UID")
    bind.add_argument("--device", default="", metavar="DEVICE", help="this device alone")
    bind.add_argument("--failed", default="", metavar="REASON", help="why it never will be")
    action("show", "Print what is said now.")
    return parser
