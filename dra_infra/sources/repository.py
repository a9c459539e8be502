"""Facts from git about a working tree: its root, what a revision is, which files are not committed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.errors import Problem, ProgramError
from dra_infra.output.wording import count_of, join_words
from dra_infra.provenance import ReviewedSide
from dra_infra.sources import git

_WHOLE_HASH: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HASH: Final = re.compile(r"[0-9a-f]{7,64}")
_BEHIND: Final = re.compile(r"(?P<from>[^~^]+)(?P<steps>(?:[~^]\d*)+)")
_RANGE: Final = re.compile(r"[-^].*|.*\.\..*|.*\^[@!-].*", re.DOTALL)
"""What git takes for several commits, or for an option (gitrevisions(7))."""
_READ: Final = (".json", ".jsonl", ".ndjson", ".py", ".toml", ".tpl", ".txt", ".yaml", ".yml")
"""Files that may decide what a source makes, when git does not know them; a page of a review does not."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree.

    Args:
        layout: Where its parts lie.
        prefix: The folder or file that was asked about, from its top; empty for the top itself.
    """

    layout: git.Layout
    prefix: str

    @property
    def top(self) -> Path:
        """Its folder."""
        return self.layout.top

    def git(self, *arguments: str) -> str | None:
        """The output of git; None when it fails.

        Raises:
            ProgramError: `no-git`, `git-no-answer`.
        """
        said = git.ask(self.layout, *arguments)
        return said.output if said.code == 0 else None

    def resolve(self, revision: str) -> str:
        """The full hash of the one commit that *revision* names.

        Raises:
            ProgramError: `base-not-found`, with the command that fetches it; `no-git`, `git-no-answer`.
        """
        # A revision that starts with a dash would be read as an option; a caret says which commits are not meant.
        if revision[:1] not in "-^" and "\0" not in revision:
            # By itself first: what follows ":/" is text, and what follows "HEAD:" a path.
            named = (self._parse(revision) or "").strip()
            commit = self._parse(f"{named}^{{commit}}") if _WHOLE_HASH.fullmatch(named) else None
            if commit is not None:
                return commit.strip()
        shallow = (self.git("rev-parse", "--is-shallow-repository") or "").strip() == "true"
        message = f"{revision[:200]!r} is not a revision of this repository"
        if shallow:
            message += ", which is a shallow clone"
        raise ProgramError.of(
            path="--base",
            code="base-not-found",
            message=message,
            hint=self._how_to_fetch(revision, shallow=shallow),
        )

    def submodule(self, path: str) -> Repository | None:
        """The clone of the submodule at *path*; None where there is none that `git submodule` made.

        One whose repository lies in its own folder is none: whoever fills the folder would say what git reads.

        Raises:
            ProgramError: `no-git`, `git-no-answer`.
        """
        folder = self.top / path
        if not os.path.lexists(folder / ".git") or folder.resolve() != folder:
            return None
        opened = git.open_repository(folder)
        if not isinstance(opened, git.Layout) or not opened.private.is_relative_to(self.layout.shared):
            return None
        return Repository(opened, "")

    def uncommitted(self, *, everything: bool = False) -> dict[str, str]:
        """Files below the folder that differ from the last commit, or are not in it, with git's two letters.

        Args:
            everything: Whether to name every file of folders that git does not know.
        """
        untracked = "all" if everything else "normal"
        within = ["--", self.prefix] if self.prefix else []
        # Git asks submodules by their own settings; so each is asked here, below.
        arguments = [
            "--porcelain=v1",
            "-z",
            f"--untracked-files={untracked}",
            "--no-renames",
            "--ignore-submodules=dirty",
        ]
        said = self.git("status", *arguments, *within)
        found = {line[3:]: line[:2] for line in (said or "").split("\0") if line}
        for path in self._submodules(within):
            submodule = self.submodule(path)
            if submodule is not None and path not in found and submodule.uncommitted():
                found[path] = " M"
        return found

    def _submodules(self, within: list[str]) -> Iterator[str]:
        if not (self.top / ".gitmodules").exists():
            return
        for line in (self.git("ls-files", "--stage", "-z", *within) or "").split("\0"):
            what, _, path = line.partition("\t")
            if what.startswith("160000 "):
                yield path

    def _parse(self, revision: str) -> str | None:
        return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", revision)

    def _how_to_fetch(self, revision: str, *, shallow: bool) -> str:
        if _RANGE.fullmatch(revision):
            return "name one commit, such as `main`, `v1.4` or `HEAD~1`"
        remotes = git.remotes(self.layout)
        depth = "--depth=1 " if shallow else ""
        remote, _, branch = revision.partition("/")
        behind = _BEHIND.fullmatch(revision)
        if not remotes or not re.fullmatch(r"[\w./~^-]+", revision):
            return "name a branch, a tag or a commit; `git log --oneline` lists commits"
        if behind and self._parse(f"{behind['from']}^{{commit}}") is not None:
            if not shallow:
                return "its history is not that long; `git log --oneline` lists it"
            steps = sum(int(each or 1) for each in re.findall(r"[~^](\d*)", behind["steps"]))
            return f"run `git fetch --deepen={steps}` first"
        if branch and remote in remotes:
            reference = f"+refs/heads/{branch}:refs/remotes/{remote}/{branch}"
            return f"run `git fetch {depth}{remote} {reference}` first"
        origin = "origin" if "origin" in remotes else remotes[0]
        if _HASH.fullmatch(revision):
            return f"run `git fetch {depth}{origin} {revision}` first"
        return f"run `git fetch {depth}{origin} {revision}` first, and compare with --base FETCH_HEAD"


def find_repository(directory: Path) -> Repository:
    """The working tree that *directory*, a folder or a file, is in: one that the user works in, none that it holds.

    That is the one around the current folder where *directory* is in it too, else the outermost around *directory*; or
    a submodule of it. Only a `.git` makes a repository, which no commit can hold: a folder with files like those of a
    bare repository makes none.

    Raises:
        ProgramError: `no-project` when it does not exist, `no-repository`, `no-git`, `git-no-answer`.
    """
    folder = directory if directory.is_dir() else directory.parent
    if not directory.exists():
        raise ProgramError.of(
            path=str(directory),
            code="no-project",
            message="there is no such file or folder",
            hint="name a Pulumi project, a folder of manifests, or a chart",
        )
    real = folder.resolve()
    tops = [each for each in (real, *real.parents) if os.path.lexists(each / ".git")]
    around = _around_the_user(tops)
    named = Path(os.path.abspath(folder))  # noqa: PTH100  (without following links)
    written = _around_the_user([each for each in (named, *named.parents) if os.path.lexists(each / ".git")])
    if written is not None and written != around:
        message = f"leads out of the repository {written}"
        raise ProgramError([_no_repository(directory, message, f"name the folder that it leads to: {real}")])
    if around is None:
        raise ProgramError([_outside(directory, real)])
    layout = _open(directory, tops[0])
    if tops[0] != around and not layout.private.is_relative_to(_open(directory, around).shared):
        message = f"is in a repository of its own, {tops[0]}, inside of {around}"
        raise ProgramError(
            [_no_repository(directory, message, f"run the review from there: `cd {tops[0]}` first")]
        )
    name = "" if directory.is_dir() else directory.name
    prefix = (real.relative_to(layout.top) / name).as_posix()
    return Repository(layout, "" if prefix == "." else prefix)


def notes_of_tree(repository: Repository, base: str, state: Mapping[str, str]) -> Iterator[str]:
    """Notes on the working tree for readers of a review: files that are not committed, and files that the program wrote.

    Args:
        repository: The working tree.
        base: The revision that it is compared with.
        state: What `Repository.uncommitted` gave before the program ran.
    """
    relevant = _relevant(state)
    # Against the last commit itself, what is not committed is what the user asks about.
    if relevant and repository.resolve(base) != repository.resolve("HEAD"):
        shown = join_words(sorted(relevant))
        yield f"The working tree is reviewed as it is: {count_of(len(relevant), 'file')} not committed ({shown})."
    left = [
        name
        for name, letters in repository.uncommitted(everything=True).items()
        if state.get(name) != letters and "__pycache__" not in name
    ]
    if left:
        yield f"The program wrote into its folder while it ran: {join_words(sorted(left))}."


def read_side_of_tree(path: Path, state: Mapping[str, str] | None = None) -> ReviewedSide:
    """Return what is known of files that a review reads as they are: the commit of their working tree, where they are part of it.

    Args:
        path: A folder or a file, in a repository or not.
        state: What `Repository.uncommitted` returned, where it was called before.
    """
    unknown = ReviewedSide(origin="files")
    try:
        repository = find_repository(path)
        commit = (repository.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}") or "").strip()
        if not commit or not _is_committed(repository):
            return unknown
        state = repository.uncommitted(everything=True) if state is None else state
    except ProgramError:
        # A review of folders needs no git.
        return unknown
    return ReviewedSide(origin="working tree", commit=commit, is_changed=bool(_relevant(state)))


def is_tree_changed(repository: Repository, *, without: Path | None = None) -> bool:
    """Return whether the folder has files that may decide what it makes, and that are not committed.

    Args:
        repository: The folder in its working tree.
        without: A file that decides nothing, such as the one that a command writes.
    """
    state = repository.uncommitted(everything=True)
    return any(
        without is None or repository.top / name != Path(os.path.realpath(without))
        for name in _relevant(state)
    )


def _is_committed(repository: Repository) -> bool:
    """Whether the last commit has the folder or file. Files that git ignores are in a working tree, and in no commit."""
    prefix = repository.prefix
    return not prefix or bool(repository.git("ls-tree", "--full-tree", "HEAD", "--", prefix))


def _relevant(state: Mapping[str, str]) -> list[str]:
    """The files that may decide what a source makes, of those that are not committed."""
    return [name for name, letters in state.items() if letters != "??" or name.endswith(_READ)]


def may_be_in_repository(directory: Path) -> bool:
    """True when a `.git` lies above *directory*, by its name or by where links lead."""
    names = (os.path.realpath(directory), os.path.abspath(directory))  # noqa: PTH100  (without following links)
    return any(os.path.lexists(each / ".git") for name in map(Path, names) for each in (name, *name.parents))


def _around_the_user(tops: list[Path]) -> Path | None:
    """Of folders that are each in the next, the first that the current folder is in too, else the last."""
    real = [each.resolve() for each in tops]
    return next((each for each in real if Path.cwd().is_relative_to(each)), real[-1] if real else None)


def _open(directory: Path, top: Path) -> git.Layout:
    opened = git.open_repository(top)
    if isinstance(opened, git.Layout):
        return opened
    message = f"is in {top}, which git does not read: {opened.reason}"
    hint = "run `git status` there"
    if "dubious ownership" in opened.reason:
        message = "is in a repository of another user, which git does not read"
        hint = f"run `git config --global --add safe.directory {top}` first"
    raise ProgramError([_no_repository(directory, message, hint)])


def _outside(directory: Path, folder: Path) -> Problem:
    for each in (folder, *folder.parents):
        if (each / "HEAD").is_file() and (each / "objects").is_dir() and (each / "refs").is_dir():
            message = "is in a bare repository, which has no files to review"
            return _no_repository(directory, message, "clone it: `git clone` gives a working tree")
    message = "is not in a git repository, so there is nothing to compare with"
    hint = "name the former state with --base-path, or put it in git: `git init`, and commit"
    return _no_repository(directory, message, hint)


def _no_repository(directory: Path, message: str, hint: str) -> Problem:
    return Problem(path=str(directory), code="no-repository", message=message, hint=hint)
