"""N claim templates as bare cdk8s objects: NUMBER, then `selectors` or `counts`."""

import sys

from cdk8s import ApiObject, App, Chart, JsonPatch
from templates import spec_of

app = App()
chart = Chart(app, "chart")
for index in range(int(sys.argv[1])):
    template = ApiObject(
        chart,
        f"t{index}",
        api_version="resource.k8s.io/v1",
        kind="ResourceClaimTemplate",
        metadata={"name": f"t{index}"},
    )
    template.add_json_patch(JsonPatch.add("/spec", spec_of(index, selectors=sys.argv[2] == "selectors")))
sys.stdout.write(app.synth_yaml())
