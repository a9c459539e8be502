"""The search against two slow and simple ones: the scheduler's recursion written down plainly, and trying everything."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.support.placing import place

DOMAIN = "gpu.example.com"
SELECTORS = {
    "true": lambda device: True,
    f"device.attributes['{DOMAIN}'].?a.orValue(0) == 1": lambda device: device.get("a") == 1,
    f"device.attributes['{DOMAIN}'].?a.orValue(0) != 2": lambda device: device.get("a") != 2,
    f"'b' in device.attributes['{DOMAIN}']": lambda device: "b" in device,
    f"device.attributes['{DOMAIN}'].b == 'x'": lambda device: device["b"] == "x",
}
UNGUARDED = list(SELECTORS)[-1]
GUARDED = list(SELECTORS)[:-1]
TAINT = {"key": "k", "effect": "NoSchedule"}


class AbortedError(Exception):
    pass


devices = st.fixed_dictionaries(
    {},
    optional={"a": st.sampled_from([1, 2]), "b": st.sampled_from(["x", "y"]), "tainted": st.just(True)},
)


def requests(selectors, modes):
    return st.fixed_dictionaries(
        {
            "selectors": st.lists(st.sampled_from(selectors), max_size=2),
            "count": st.sampled_from(modes),
            "tolerates": st.booleans(),
        }
    )


def claims(selectors, modes):
    def constrained(asked):
        names = [f"r{index}" for index in range(len(asked))]
        constraint = st.fixed_dictionaries(
            {
                "kind": st.sampled_from(["matchAttribute", "distinctAttribute"]),
                "attribute": st.sampled_from(["a", "b"]),
                "requests": st.lists(st.sampled_from(names), unique=True),
            }
        )
        return st.tuples(st.just(asked), st.one_of(st.just([]), st.lists(constraint, max_size=2)))

    return st.lists(requests(selectors, modes), min_size=1, max_size=2).flatmap(constrained)


def slots_of(pod, pool):
    """(claim, request, pick) of every device to pick; a request for all is a list of positions."""
    slots = []
    for claim, (asked, _) in enumerate(pod):
        for number, request in enumerate(asked):
            if request["count"] == "All":
                slots.append(
                    (claim, number, [i for i, device in enumerate(pool) if selects(request, device)])
                )
            else:
                slots.append((claim, number, request["count"]))
    return slots


def selects(request, device):
    for selector in request["selectors"]:
        if selector == UNGUARDED and "b" not in device:
            raise AbortedError
        if not SELECTORS[selector](device):
            return False
    return True


def meets(constraints, picked, pool):
    """Whether devices picked for one claim, as (request, position), keep its constraints."""
    for constraint in constraints:
        covered = [
            pool[position].get(constraint["attribute"])
            for request, position in picked
            if not constraint["requests"] or f"r{request}" in constraint["requests"]
        ]
        if None in covered:
            return False
        distinct = len(set(covered))
        if constraint["kind"] == "matchAttribute" and distinct > 1:
            return False
        if constraint["kind"] == "distinctAttribute" and distinct < len(covered):
            return False
    return True


class Recursion:
    """allocateOne of the scheduler, written down as plainly as possible."""

    def __init__(self, pod, pool):
        self.pod = pod
        self.pool = pool
        self.slots = slots_of(pod, pool)

    def search(self):
        """(claim, request, position) of every pick; None when nothing fits."""
        return self.allocate_one(0, 0, 0, [])

    def allocate_one(self, index, pick, start, picked):
        if index == len(self.slots):
            return picked
        wanted = self.slots[index][2]
        if wanted == []:
            return None
        if pick == (len(wanted) if isinstance(wanted, list) else wanted):
            return self.allocate_one(index + 1, 0, 0, picked)
        if isinstance(wanted, list):
            return self.take_exactly(index, pick, wanted[pick], picked)
        return self.take_first(index, pick, start, picked)

    def take_exactly(self, index, pick, position, picked):
        claim, number, _ = self.slots[index]
        if position in positions_of(picked) or not self.tolerates(claim, number, position):
            return None
        if not self.keeps(claim, number, position, picked):
            raise AbortedError
        return self.allocate_one(index, pick + 1, 0, [*picked, (claim, number, position)])

    def take_first(self, index, pick, start, picked):
        claim, number, _ = self.slots[index]
        for position in range(start, len(self.pool)):
            if position in positions_of(picked) or not selects(
                self.pod[claim][0][number], self.pool[position]
            ):
                continue
            if self.tolerates(claim, number, position) and self.keeps(claim, number, position, picked):
                found = self.allocate_one(index, pick + 1, position + 1, [*picked, (claim, number, position)])
                if found is not None:
                    return found
        return None

    def tolerates(self, claim, number, position):
        return not self.pool[position].get("tainted") or self.pod[claim][0][number]["tolerates"]

    def keeps(self, claim, number, position, picked):
        mine = [(r, p) for c, r, p in picked if c == claim] + [(number, position)]
        return meets(self.pod[claim][1], mine, self.pool)


def positions_of(picked):
    return [position for _, _, position in picked]


def first_of_all_choices(pod, pool):
    """Every choice in the order of the search, and the first valid one; None when there is none."""
    slots = slots_of(pod, pool)
    options = [
        list(combinations(range(len(pool)), wanted))
        if isinstance(wanted, int)
        else ([tuple(wanted)] if wanted else [])
        for _, _, wanted in slots
    ]
    for choice in product(*options):
        picked = [
            (claim, number, position)
            for (claim, number, _), positions in zip(slots, choice, strict=True)
            for position in positions
        ]
        positions = [position for _, _, position in picked]
        if len(set(positions)) == len(positions) and all(
            (not pool[position].get("tainted") or pod[claim][0][number]["tolerates"])
            and selects(pod[claim][0][number], pool[position])
            for claim, number, position in picked
        ):
            by_claim = [[(r, p) for c, r, p in picked if c == claim] for claim in range(len(pod))]
            if all(meets(pod[claim][1], mine, pool) for claim, mine in enumerate(by_claim)):
                return picked
    return None


def answer_of(build, pod, pool):
    """What the product says: picks, None, or "aborted"."""
    published = [
        build.a_device(
            f"d{index:02}",
            {name: value for name, value in device.items() if name != "tainted"},
            **({"taints": [TAINT]} if device.get("tainted") else {}),
        )
        for index, device in enumerate(pool)
    ]
    manifests = [build.a_class()]
    for claim, (asked, constraints) in enumerate(pod):
        leaves = []
        for number, request in enumerate(asked):
            exactly = {"tolerations": [{"operator": "Exists"}]} if request["tolerates"] else {}
            mode = {"allocationMode": "All"} if request["count"] == "All" else {"count": request["count"]}
            leaves.append(build.a_request(f"r{number}", *request["selectors"], **exactly, **mode))
        manifests.append(
            build.a_template(
                f"t{claim}",
                *leaves,
                constraints=[
                    {each["kind"]: f"{DOMAIN}/{each['attribute']}", "requests": each["requests"]}
                    for each in constraints
                ],
            )
        )
    manifests.append(build.a_pod("p", *(f"template:t{claim}" for claim in range(len(pod)))))
    (answer,) = place(manifests, build.a_fleet(build.a_slice("n", published))).workloads
    if "allocation-aborted" in build.codes(answer):
        return "aborted"
    assert answer.verdict in ("fits", "does-not-fit")
    if answer.verdict == "does-not-fit":
        assert answer.reasons
        return None
    return [
        (int(each.claim[1:]), int(each.request[1:]), int(each.device[1:])) for each in answer.nodes[0].devices
    ]


@settings(max_examples=300, deadline=None)
@given(
    pool=st.lists(devices, min_size=2, max_size=7),
    pod=st.lists(claims(list(SELECTORS), [1, 2, 3, "All"]), min_size=1, max_size=2),
)
def test_answer_is_the_one_of_the_plain_recursion(build, pool, pod):
    try:
        expected = Recursion(pod, pool).search()
    except AbortedError:
        expected = "aborted"
    event(expected if expected in (None, "aborted") else "fits")
    assert answer_of(build, pod, pool) == expected


@settings(max_examples=200, deadline=None)
@given(
    pool=st.lists(devices, min_size=1, max_size=5),
    pod=st.lists(claims(GUARDED, [1, 2, 3]), min_size=1, max_size=2),
)
def test_answer_is_the_first_of_all_valid_choices(build, pool, pod):
    assert answer_of(build, pod, pool) == first_of_all_choices(pod, pool)
