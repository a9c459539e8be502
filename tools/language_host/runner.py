"""Run one Pulumi program in a process of its own, with the Python of the program's environment.

Started by path with `-P`: that environment knows nothing of this package, so only `pulumi` is imported.
Exits with 0, with 32 when the program failed and the engine was told why, or as the program itself exits.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import runpy
import sys
import traceback
from pathlib import Path

if __name__ == "__main__":
    # A program makes its objects, most of them classes of the SDK, and ends: looking for garbage finds none and takes time.
    gc.disable()

import pulumi
from pulumi import runtime
from pulumi.runtime.stack import run_in_stack

PROGRAM_FAILED = 32


def parse_arguments() -> argparse.Namespace:
    """Read what the language host says about the deployment."""
    parser = argparse.ArgumentParser()
    for name in ("monitor", "engine", "project", "stack", "organization", "pwd", "root-directory"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args()


def describe_failure(error: BaseException, program: Path) -> str:
    """Render *error* with the frames of the user's own files only, causes included."""
    directory = str(program if program.is_dir() else program.parent) + os.sep
    rendered = traceback.TracebackException.from_exception(error, capture_locals=False)
    link: traceback.TracebackException | None = rendered
    while link is not None:
        own = [
            frame
            for frame in link.stack
            if frame.filename.startswith(directory) and "site-packages" not in frame.filename
        ]
        link.stack = traceback.StackSummary.from_list(own)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return "Program failed:\n" + "".join(rendered.format()).rstrip()


def main() -> int:
    """Run the program against the engine; return the exit status."""
    arguments = parse_arguments()
    runtime.set_all_config(runtime.get_config_env(), runtime.get_config_secret_keys_env())
    runtime.configure(
        runtime.Settings(
            monitor=arguments.monitor,
            engine=arguments.engine,
            project=arguments.project,
            stack=arguments.stack,
            parallel=arguments.parallel,
            dry_run=arguments.dry_run,
            organization=arguments.organization,
            root_directory=arguments.root_directory,
        )
    )
    os.chdir(arguments.pwd)
    program = Path(arguments.program).resolve()
    sys.argv = [str(program), *arguments.arguments]
    sys.path.insert(0, str(program if program.is_dir() else program.parent))

    def run_program() -> None:
        runpy.run_path(str(program), run_name="__main__")

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(run_in_stack(run_program))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return PROGRAM_FAILED
    except Exception as error:  # noqa: BLE001 - whatever a user's program raises is shown, never let through.
        pulumi.log.error(describe_failure(error, program))
        return PROGRAM_FAILED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
