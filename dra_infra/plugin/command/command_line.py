"""Command lines of `dra-infra-plugin` and `dra-infra-plugin sim`, and their help.

The words behind `dra-infra-plugin` and its help are both made of the table of settings. `dra-infra-plugin sim` says
what happens to simulated devices, in the file that the plugin looks at.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.plugin.command.settings import all_settings
from dra_infra.plugin.command.settings_reading import CONFIG_VARIABLE

_ABOUT: Final = """Prepare the devices of claims on this node, as a DRA driver's kubelet plugin does.

Settings are read from the file, then from the environment, then from flags: what is nearer to the command wins.
"""
_END: Final = """Examples:
  dra-infra-plugin --back-end sim --fleet hgx-h100 --node-name "$NODE_NAME"
  dra-infra-plugin --check --config /etc/dra-infra/plugin.yaml

`dra-infra-plugin sim --help` has what simulated devices can be told.
Ends with 0 after SIGTERM or SIGINT, 1 where it cannot work or a check fails, 2 on a mistake in the settings,
130 after SIGINT while it loads, in --check and in sim.
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        """Format the value of a flag without brackets: it may be missing only so that this is told with all other mistakes."""
        return str(action.metavar) if action.nargs == "?" else super()._format_args(action, default_metavar)


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """A command line, parsed: the texts of its flags by the settings' names, and what is no flag."""

    flags: Mapping[str, str]
    unknown: Sequence[str]
    file: Path | None
    check: bool
    as_json: bool
    version: bool


def parse(words: Sequence[str], environment: Mapping[str, str]) -> CommandLine:
    """Take the words of a command line apart; `--help` prints and ends the process."""
    parser = _parser()
    # An option without its value is told as all other mistakes are: together, and later.
    options, unknown = parser.parse_known_args(list(words))
    names = {each.name for each in all_settings()}
    flags = {name: text for name, text in vars(options).items() if name in names and text is not None}
    file = options.config if options.config is not None else environment.get(CONFIG_VARIABLE) or None
    return CommandLine(
        flags=flags,
        unknown=unknown,
        file=None if file is None else Path(file).expanduser(),
        check=options.check,
        as_json=options.json,
        version=options.version,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dra-infra-plugin",
        usage="dra-infra-plugin --back-end sim|nvml --node-name NAME [OPTIONS]",
        description=_ABOUT,
        epilog=_END,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    about = parser.add_argument_group("settings")
    for setting in all_settings():
        default = f"default: {setting.default}" if setting.default else "must be given"
        # `--fleet` alone has the value "", which no setting takes.
        about.add_argument(
            setting.flag,
            dest=setting.name,
            metavar=setting.about.kind.metavar,
            nargs="?",
            const="",
            help=f"{setting.about.meaning} [{setting.variable}; {default}]".replace("%", "%%"),
        )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"a YAML file of settings, each by its name as in nodeName [{CONFIG_VARIABLE}; default: none]",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="try folders, addresses, rights, API server, kubelet and devices, and end",
    )
    parser.add_argument("--json", action="store_true", help="print what --check found as JSON")
    parser.add_argument("--version", action="store_true", help="print the version and end")
    return parser
