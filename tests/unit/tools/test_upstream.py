"""Declarations of Go files, and what changed in them between two releases in a module cache on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.errors import ToolError
from tools.upstream import __main__ as command
from tools.upstream.changes import ChangedDeclaration, find_changes, find_missing, find_rows
from tools.upstream.declarations import find_declarations, without_comments
from tools.upstream.modules import Sources
from tools.upstream.ported import PortedModule, load

SOURCE = """\
package sample

import (
\t"errors"
)

// One returns one.
func One() int { return 1 }

func (a *allocator) Allocate(
\tctx context.Context,
) error {
\t// Inside.
\tif true {
\t\treturn nil
\t}
\treturn errStop
}

func (s set[T]) Has(item T) bool {
\treturn true
}

func Generic[T any](item T) T {
\treturn item
}

type allocator struct {
\tname string
}

type alias = string

var errStop = errors.New("stop")

const (
\t// Size is a size.
\tSize = 32
\tLonger,
\tNames = 1, 2
)

var features = map[string]int{
\t"a": 1,
}

var text = `first
second`
"""


def test_each_declaration_has_its_text():
    found = find_declarations(SOURCE)
    assert list(found) == [
        "One",
        "allocator.Allocate",
        "set.Has",
        "Generic",
        "allocator",
        "alias",
        "errStop",
        "Size",
        "Longer",
        "Names",
        "features",
        "text",
    ]
    assert found["One"] == "func One() int { return 1 }"
    assert found["allocator.Allocate"].endswith("\treturn errStop\n}")
    assert found["features"] == 'var features = map[string]int{\n\t"a": 1,\n}'
    assert found["Size"] == "\tSize = 32"


def test_comments_and_columns_do_not_count():
    one = "func A() {\n\t// Old words.\n\tx  := 1\n\n\ty := 2\n}"
    other = "func A() {\n\t// New words,\n\t// and more.\n\tx := 1\n\ty := 2\n}"
    assert without_comments(one) == without_comments(other)
    assert without_comments(one) != without_comments(one.replace("1", "2"))


def write(cache: Path, module: str, files: dict[str, str]) -> None:
    for path, text in files.items():
        file = cache / module / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


GO_MOD = "module k8s.io/kubernetes\n\nrequire (\n\tgithub.com/google/cel-go {cel}\n\tk8s.io/api v0.0.0\n)\n"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Two releases: `Same` stays, `Other` changes, `Gone` goes, `New` comes."""
    write(
        tmp_path,
        "k8s.io/kubernetes@v1.36.4",
        {
            "go.mod": GO_MOD.format(cel="v0.26.0"),
            "pkg/a.go": "func Same() {\n}\n\nfunc Other() {\n\ta()\n}\n",
        },
    )
    write(
        tmp_path,
        "k8s.io/kubernetes@v1.37.1",
        {
            "go.mod": GO_MOD.format(cel="v0.29.2"),
            "pkg/a.go": "// Words.\nfunc Same() {\n}\n\nfunc Other() {\n\tb()\n}\n",
            "pkg/new.go": "func New() {\n}\n",
        },
    )
    write(tmp_path, "k8s.io/api@v0.36.4", {"types.go": "type Gone struct {\n}\n"})
    write(tmp_path, "k8s.io/api@v0.37.1", {"types.go": "type Kept struct {\n}\n"})
    write(tmp_path, "github.com/google/cel-go@v0.26.0", {"b.go": "func B() {\n}\n"})
    write(tmp_path, "github.com/google/cel-go@v0.29.2", {"b.go": "func B() {\n}\n"})
    return tmp_path


@pytest.fixture
def ported(tmp_path: Path) -> tuple[PortedModule, ...]:
    file = tmp_path / "ported.toml"
    file.write_text(
        """
        ["api/gates.py"]
        upstream = [
          "k8s.io/kubernetes/pkg/a.go: Same, Other",
          "k8s.io/kubernetes/pkg/new.go",
          "k8s.io/api/types.go (until 1.36): Gone",
          "github.com/google/cel-go/b.go: B",
        ]
        ["api/gates.py".differs]
        "1.37" = ["Other"]

        ["problems.py"]
        ours = "our own"
        """
    )
    return load(file)


def releases(cache: Path) -> tuple[Sources, Sources]:
    return Sources(release="v1.36.4", cache=cache), Sources(release="v1.37.1", cache=cache)


def test_a_file_has_its_module_its_names_and_its_last_minor(ported: tuple[PortedModule, ...]):
    module, ours = ported
    assert [(each.module, each.path, each.names, each.until) for each in module.files] == [
        ("k8s.io/kubernetes", "pkg/a.go", ("Same", "Other"), None),
        ("k8s.io/kubernetes", "pkg/new.go", (), None),
        ("k8s.io/api", "types.go", ("Gone",), 36),
        ("github.com/google/cel-go", "b.go", ("B",), None),
    ]
    assert (ours.ours, ours.files, module.differs) == ("our own", (), {"1.37": ("Other",)})


def test_what_differs_is_found_with_its_diff(cache: Path, ported: tuple[PortedModule, ...]):
    found = list(find_changes(ported[0], *releases(cache)))
    assert [(each.name, bool(each.before), bool(each.after)) for each in found] == [
        ("Other", True, True),
        ("New", False, True),
        ("Gone", True, False),
    ]
    assert found[0].diff == "@@ -1,3 +1,3 @@\n func Other() {\n-\ta()\n+\tb()\n }"


def test_the_lines_of_ours_that_name_a_declaration_are_found(ported: tuple[PortedModule, ...]):
    module = next(each for each in load() if each.name == "api/gates.py")
    change = next(iter(find_changes_of("defaultVersionedKubernetesFeatureGates", module)))
    rows = list(find_rows(module, change))
    assert rows
    assert all(each.startswith("dra_infra/kubernetes/api/gates.py:") for each in rows)
    eviction = next(each for each in load() if each.name == "scheduler/device_evictions.py")
    (change,) = find_changes_of("Controller.podEvictionTime", eviction)
    assert "dra_infra/kubernetes/api/patches.py: EVICTS_BY_EXTENDED_RESOURCE" in list(
        find_rows(eviction, change)
    )


def find_changes_of(name: str, module: PortedModule) -> list[ChangedDeclaration]:
    return [
        ChangedDeclaration(file=file, name=name, before="a", after="b")
        for file in module.files
        if name in file.names
    ]


def test_files_and_names_that_a_release_lacks_are_found(cache: Path, ported: tuple[PortedModule, ...]):
    older, newer = releases(cache)
    assert list(find_missing(ported[0], newer, 37)) == []
    assert list(find_missing(ported[0], older, 36)) == ["api/gates.py: k8s.io/kubernetes/pkg/new.go"]


def test_sources_that_are_not_here_are_not_taken_for_missing_files(tmp_path: Path):
    sources = Sources(release="v1.36.4", cache=tmp_path)
    assert sources.folder("k8s.io/kubernetes") is None
    with pytest.raises(FileNotFoundError, match="not in Go's module cache"):
        sources.read("k8s.io/api", "types.go")


@pytest.mark.parametrize("release", ["1.36.4", "v1.36", "latest", "v1.36.4 --x", ""])
def test_what_is_no_version_is_refused_before_anything_is_asked_for(tmp_path: Path, release: str):
    with pytest.raises(ToolError, match="is not one of Kubernetes"):
        Sources(release=release, cache=tmp_path)


def test_a_module_that_the_release_does_not_require_has_no_files(cache: Path):
    assert Sources(release="v1.36.4", cache=cache).read("example.com/x/y", "a.go") is None


def test_a_module_is_found_under_its_later_path(cache: Path):
    write(
        cache,
        "k8s.io/kubernetes@v1.38.0-beta.0",
        {"go.mod": "module k8s.io/kubernetes\n\nrequire (\n\tcel.dev/cel-go v0.30.0\n)\n"},
    )
    write(cache, "cel.dev/cel-go@v0.30.0", {"b.go": "func B() {\n}\n"})
    sources = Sources(release="v1.38.0-beta.0", cache=cache)
    assert sources.read("github.com/google/cel-go", "b.go") == "func B() {\n}\n"


def test_the_command_prints_each_change_and_how_many_modules_changed(
    cache: Path,
    ported: tuple[PortedModule, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("GOMODCACHE", str(cache))
    monkeypatch.setattr(command, "load", lambda: ported)
    assert command.main(["v1.36.4", "v1.37.1"]) == 0
    printed = capsys.readouterr().out
    assert "api/gates.py: 3 changed\n  Other of k8s.io/kubernetes/pkg/a.go changed\n" in printed
    assert "    -\ta()\n    +\tb()\n" in printed
    assert "  New of k8s.io/kubernetes/pkg/new.go is new\n" in printed
    assert "  Gone of k8s.io/api/types.go is gone\n" in printed
    assert printed.endswith("1 of 1 ported modules changed upstream from v1.36.4 to v1.37.1\n")
    assert command.main(["v1.36.4", "v1.37.1", "--names"]) == 0
    assert "a()" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["v1.36", "v1.37.1"], "is not one of Kubernetes"),
        (["v1.36.4", "v1.37.1", "--module", "api/other.py"], "no ported module is called api/other.py"),
    ],
)
def test_a_mistyped_argument_is_an_error_and_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], error: str
):
    monkeypatch.setenv("GOMODCACHE", "not-there")
    assert command.main(arguments) == 1
    assert error in capsys.readouterr().err


def test_a_module_that_go_is_unpacking_is_not_there_yet(tmp_path: Path):
    folder = tmp_path / "k8s.io/kubernetes@v1.36.4"
    folder.mkdir(parents=True)
    mark = tmp_path / "cache/download/k8s.io/kubernetes/@v/v1.36.4.partial"
    mark.parent.mkdir(parents=True)
    mark.touch()
    assert Sources(release="v1.36.4", cache=tmp_path).folder("k8s.io/kubernetes") is None
    mark.unlink()
    assert Sources(release="v1.36.4", cache=tmp_path).folder("k8s.io/kubernetes") == folder
