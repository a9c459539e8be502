from __future__ import annotations

from dra_infra.kubernetes.api import DeviceTaint, Node, NodeTaint, ObjectRef
from dra_infra.review import fleet_map
from dra_infra.review.fleet_colors import OTHER, choose_colors, letter_of
from dra_infra.review.fleet_map import draw_fleet

H100 = "H100 80GB HBM3"


def ref(name, kind="Job"):
    return ObjectRef(kind=kind, name=name, namespace="ml")


def cells(drawn):
    return [cell for group in drawn.groups for tile in group.tiles for cell in tile.cells]


def test_a_device_is_coloured_by_who_gets_it_and_remembers_who_had_it(make):
    fleet = make.fleet(make.node("n0", gpus=4))
    before, after = make.place(fleet, ("Job", "a", 1, 2, H100)), make.place(fleet, ("Job", "b", 1, 1, H100))
    drawn = draw_fleet(before, after, [ref("b"), ref("a")])
    assert [(cell.now, cell.was, cell.state, cell.letter) for cell in cells(drawn)] == [
        (0, 1, "used", "A"),
        (-1, 1, "free", ""),
        (-1, -1, "free", ""),
        (-1, -1, "free", ""),
    ]
    assert [(entry.letter, entry.name, entry.note) for entry in drawn.legend] == [
        ("A", "ml/b", ""),
        ("B", "ml/a", "gone"),
    ]
    assert [(bar.title, bar.used, bar.total) for bar in drawn.bars] == [("before", 2, 4), ("after", 1, 4)]


def test_partitions_share_the_cell_of_their_gpu(make):
    fleet = make.fleet(make.node("n0", gpus=1, partitions=1))
    drawn = draw_fleet(None, make.place(fleet, ("Job", "a", 1, 1, "1g.10gb")), [ref("a")])
    whole, *parts = cells(drawn)
    assert len(parts) == 7
    assert whole.width == 28
    assert parts[0].x == 32
    assert parts[-1].x + parts[-1].width <= 60


def test_a_model_that_nobody_uses_is_drawn_apart(make):
    fleet = make.fleet(make.node("n0", gpus=1), make.node("n1", "L40S", gpus=1))
    drawn = draw_fleet(None, make.place(fleet, ("Job", "a", 1, 1, H100)), [ref("a")])
    assert {cell.label.split(" · ")[1]: cell.state for cell in cells(drawn)} == {
        H100: "used",
        "L40S": "other",
    }


def test_cordoned_and_tainted_nodes_are_closed_and_hold_nothing_free(make):
    fleet = make.fleet(
        make.node("n0", gpus=1),
        make.node("n1", gpus=1, unschedulable=True),
        make.node("n2", gpus=1, taints=(NodeTaint(key="team"),)),
    )
    drawn = draw_fleet(None, make.place(fleet, ("Job", "a", 1, 1, H100)), [ref("a")])
    tiles = {tile.name: tile for group in drawn.groups for tile in group.tiles}
    assert [tiles[name].cells[0].state for name in ("n0", "n1", "n2")] == ["used", "closed", "closed"]
    assert [tiles[name].tags for name in ("n0", "n1", "n2")] == [(), ("cordoned",), ("tainted",)]
    assert drawn.groups[0].free == 0


def test_a_device_with_a_taint_is_closed(make):
    node, slice_ = make.node("n0", gpus=1)
    device = slice_.spec.devices[0].model_copy(
        update={"taints": [DeviceTaint(key="bad", effect="NoSchedule")]}
    )
    tainted = slice_.model_copy(update={"spec": slice_.spec.model_copy(update={"devices": [device]})})
    drawn = draw_fleet(None, make.place(make.fleet((node, tainted))), [])
    assert [cell.state for cell in cells(drawn)] == ["closed"]


def test_a_very_large_fleet_shows_what_is_used_and_says_what_it_leaves_out(make, monkeypatch):
    monkeypatch.setattr(fleet_map, "MAX_NODES", 40)
    fleet = make.fleet(*(make.node(f"a{index:03}", "L40S", gpus=2) for index in range(50)), make.node("z0"))
    drawn = draw_fleet(None, make.place(fleet, ("Job", "a", 1, 4, H100)), [ref("a")])
    assert [(group.nodes, len(group.tiles)) for group in drawn.groups] == [(1, 1), (39, 1)]
    assert drawn.groups[0].tiles[0].name == "z0"
    assert drawn.remark == (
        "The map shows 40 of 51 nodes, those in use first. "
        "The others hold 22 devices; no pod of this program was placed there."
    )


def test_equal_nodes_are_one_tile_that_names_them_and_no_pods(make):
    fleet = make.fleet(*(make.node(f"n{index:02}") for index in range(12)))
    before = make.place(fleet, ("Job", "a", 4, 8, H100))
    drawn = draw_fleet(before, make.place(fleet, ("Job", "a", 5, 8, H100)), [ref("a")])
    assert [(tile.name, len(tile.nodes), tile.changes) for tile in drawn.groups[0].tiles] == [
        ("n00..03", 4, False),
        ("n04", 1, True),
        ("n05..11", 7, False),
    ]
    labels = [tile.cells[0].label for tile in drawn.groups[0].tiles]
    assert labels == [
        "gpu-0 · H100 80GB HBM3 · Job ml/a, claim gpu",
        "gpu-0 · H100 80GB HBM3 · Job ml/a, claim gpu of pod 5 (before: free)",
        "gpu-0 · H100 80GB HBM3 · free",
    ]
    assert (drawn.groups[0].nodes, drawn.groups[0].devices, drawn.groups[0].free) == (12, 96, 56)


def test_more_kinds_of_nodes_than_tiles_are_strips_of_colours(make, monkeypatch):
    monkeypatch.setattr(fleet_map, "MAX_TILES", 3)
    fleet = make.fleet(*(make.node(f"n{index}") for index in range(9)), make.node("t", "L40S", gpus=1))
    owners = [ref(f"j{index:02}") for index in range(10)]
    jobs = [("Job", owner.name, 1, 6, H100) for owner in owners[:6]]
    before, after = make.place(fleet, *jobs), make.place(fleet, *jobs, ("Job", "j06", 1, 6, H100))
    drawn = draw_fleet(before, after, owners)
    assert drawn.is_dense
    used, unused = drawn.groups
    assert (used.tiles, used.nodes, used.devices, used.free) == ((), 9, 72, 30)
    assert [strip.changes for strip in used.strips] == [True] + [False] * 7
    assert [strip.parts for strip in used.strips[:2]] == [((6, 75), (-1, 100)), ((0, 75), (-1, 100))]
    names = [(strip.name, len(strip.nodes)) for strip in used.strips]
    assert (names[0], names[-1]) == (("n6", 1), ("n7..8", 2))
    assert used.strips[0].description == "of 8 devices 2 free and 6 for workload ml/j06"
    assert [strip.parts for strip in unused.strips] == [((-1, 100),)]


def test_workloads_have_colours_while_they_are_few_then_namespaces_or_teams(make):
    few = [ref(f"w{index}") for index in range(8)]
    assert choose_colors(few, {}, {}).of == tuple(range(8))
    spaces = [ObjectRef(kind="Job", name=f"w{index}", namespace=f"s{index % 10}") for index in range(20)]
    colors = choose_colors(spaces, dict.fromkeys((3, 9, 19), 8), {})
    assert (colors.by, len(colors.names), set(colors.of)) == ("namespace", 8, {*range(8), OTHER})
    # Of ten namespaces those with most devices have a colour; then the first by name.
    assert colors.names == ("s0", "s1", "s2", "s3", "s4", "s5", "s6", "s9")
    assert colors.of[7] == colors.of[18] == OTHER
    teams = {owner: f"team-{index % 2}" for index, owner in enumerate(spaces)}
    colors = choose_colors(spaces, {}, teams)
    assert (colors.by, colors.names, set(colors.of)) == ("team", ("team-0", "team-1"), {0, 1})
    # A team that is not known of all says nothing of the whole fleet.
    assert choose_colors(spaces, {}, {spaces[0]: "team-0"}).by == "namespace"
    one = [ref(f"w{index:02}") for index in range(20)]
    colors = choose_colors(one, {19: 4}, {})
    assert (colors.by, colors.names[-1], colors.of[19], colors.of[7]) == ("workload", "ml/w19", 7, OTHER)


def test_the_legend_counts_what_shares_a_colour_and_the_pods_without_a_place(make):
    fleet = make.fleet(make.node("n0"))
    wishes = [("Job", f"j{index}", 1, 1, H100) for index in range(10)]
    owners = [ref(f"j{index}") for index in range(10)]
    drawn = draw_fleet(None, make.place(fleet, *wishes), owners)
    assert [(entry.color, entry.letter, entry.name, entry.note) for entry in drawn.legend][-2:] == [
        (7, "H", "ml/j7", ""),
        (OTHER, "", "other", "2 workloads, 0 of 2 pods"),
    ]
    (bar,) = drawn.bars
    assert (len(bar.parts), bar.used) == (8, 8)


def test_nodes_without_devices_are_counted(make):
    fleet = make.fleet(make.node("n0", gpus=1), nodes=(Node(name="control-plane"),))
    drawn = draw_fleet(None, make.place(fleet), [])
    assert drawn.remark == "1 node without devices is left out."


def test_more_gpus_than_columns_take_another_row(make):
    drawn = draw_fleet(None, make.place(make.fleet(make.node("n0", gpus=16))), [])
    tile = drawn.groups[0].tiles[0]
    assert len({cell.y for cell in tile.cells}) == 2
    assert max(cell.x + cell.width for cell in tile.cells) <= tile.width
    assert max(cell.y for cell in tile.cells) + 28 <= tile.height


def test_more_workloads_than_letters_stay_distinct(make):
    owners = [ref(f"w{index}") for index in range(60)]
    placed = make.place(
        make.fleet(*(make.node(f"n{index}") for index in range(8))),
        *(("Job", owner.name, 1, 1, H100) for owner in owners),
    )
    drawn = draw_fleet(None, placed, owners)
    assert len({cell.letter for cell in cells(drawn) if cell.letter}) == 60


def test_devices_of_one_claim_hang_together_and_those_of_two_pods_do_not(make):
    fleet = make.fleet(make.node("n0", gpus=8))
    drawn = draw_fleet(None, make.place(fleet, ("Job", "a", 2, 3, H100)), [ref("a")])
    tile = drawn.groups[0].tiles[0]
    assert [cell.joined for cell in tile.cells] == [True, True, False, True, True, False, False, False]
    assert [(bar.index, bar.x, bar.width) for bar in tile.joints] == [(0, 0, 92), (0, 96, 92)]
    assert tile.cells[3].label == "gpu-3 · H100 80GB HBM3 · Job ml/a, claim gpu of pod 2"


def test_letters_of_one_workload_in_one_row_are_one_text(make):
    fleet = make.fleet(make.node("n0", gpus=9))
    drawn = draw_fleet(None, make.place(fleet, ("Job", "a", 9, 1, H100)), [ref("a")])
    assert [(each.text, each.x.split()[:2], each.y) for each in drawn.groups[0].tiles[0].letters] == [
        ("AAAAAAAA", ["14", "46"], 26.5),
        ("A", ["14"], 70.5),
    ]


def test_what_was_before_shows_only_on_nodes_where_devices_change_hands(make):
    fleet = make.fleet(make.node("n0", gpus=4), make.node("n1", gpus=4))
    before = make.place(fleet, ("Job", "a", 1, 4, H100), ("Job", "b", 1, 2, H100))
    after = make.place(fleet, ("Job", "a", 1, 4, H100), ("Job", "b", 1, 3, H100))
    drawn = draw_fleet(before, after, [ref("a"), ref("b")])
    first, second = drawn.groups[0].tiles
    assert (first.changes, first.before) == (False, ())
    assert [(bar.index, bar.width) for bar in second.before] == [(1, 60), (-1, 60)]


def test_letters_go_on_after_z():
    assert (letter_of(25), letter_of(26), letter_of(52)) == ("Z", "A1", "A2")
