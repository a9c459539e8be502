"""GPU products that `gpu=` means, by the names that people use, and GPU capabilities as a selector.

No driver publishes what GPUs can do, and the compute capability tells.
"""

from __future__ import annotations

from collections.abc import Collection

from dra_infra.catalog.gpus import capabilities as known_capabilities
from dra_infra.catalog.gpus import find_products, nearest_product
from dra_infra.errors import Problem, SelectorError
from dra_infra.kubernetes.api import Semver
from dra_infra.output.wording import nearest
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector
from dra_infra.specs.arguments import wrong_plain_type


def read_products(written: object, *, example: str) -> tuple[list[Problem], tuple[str, ...]]:
    """The products that *written* means; one name may stand for several.

    Args:
        written: As the user gave it: an NVML name or a short one.
        example: What hints show.

    Returns:
        Problems with codes `wrong-type` and `product-not-known` at `gpu`; NVML names, none where there are problems.
    """
    if not isinstance(written, str):
        return [wrong_plain_type("gpu", written, "the name of a GPU", f'write gpu="{example}"')], ()
    found = find_products(written)
    if found:
        return [], found
    near = nearest_product(written)
    hint = f'did you mean "{near}"?' if near else "`dra-infra catalog gpus` lists what is known"
    message = f"no GPU that is known here is called {written[:80]!r}"
    return [Problem(path="gpu", code="product-not-known", message=message, hint=hint)], ()


def with_capabilities(capabilities: Collection[str] | str) -> Selector:
    """True for GPUs and MIG devices that can do all of this.

    Compiles to the greatest of the least compute capabilities, each with its source in the catalogue
    (`capabilities.yaml`). What the catalogue calls an exception is not left out: GeForce GTX 16 cards pass for
    `tensor-cores` though they have none; add `& ~dra.gpu.product.contains("GTX 16")` where there are such cards.

    Args:
        capabilities: Names such as `tensor-cores`, `bf16`, `fp8`; a text is one name.

    Raises:
        SelectorError: `selector-invalid-value` for a name that is not known or when none is given, `selector-type` when
            these are no names.

    Example:
        >>> with_capabilities({"tensor-cores", "fp8"})
        gpu.compute_capability >= "8.9.0"
    """
    given: object = capabilities
    names = [given]
    if isinstance(given, Collection) and not isinstance(given, str):
        names = list(given)
    known = known_capabilities()
    for name in sorted(names, key=str):
        if not isinstance(name, str):
            raise SelectorError(
                f"with_capabilities({names!r:.80}): {name!r:.80} is no text",
                code="selector-type",
                hint='write with_capabilities({"tensor-cores"})',
            )
        if name not in known:
            near = nearest(name.lower().replace("_", "-").replace(" ", "-"), known)
            raise SelectorError(
                f"with_capabilities: {name[:80]!r} is not known",
                code="selector-invalid-value",
                hint=f"did you mean {near!r}?" if near else f"known are {', '.join(known)}",
            )
    if not names:
        raise SelectorError(
            "with_capabilities() names no capability",
            code="selector-invalid-value",
            hint=f"name one or more of {', '.join(known)}",
        )
    return gpu.compute_capability >= max((known[str(name)].since for name in names), key=Semver.parse)
