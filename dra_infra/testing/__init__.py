"""For users' own tests: a program's objects by component, where they fit, and what is wrong with them.

```python
import dra_infra as dra

def test_trainer_fits_production():
    assert dra.testing.synth("infra/").claim("trainer").fits("hgx-h100 x 4")
```
"""

from dra_infra.testing.program import Claim, Fit, SynthesizedProgram, synth

__all__ = ["Claim", "Fit", "SynthesizedProgram", "synth"]
