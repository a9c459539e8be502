"""N claim templates as bare cdk8s objects."""

import sys

from cdk8s import ApiObject, App, Chart, JsonPatch

app = App()
chart = Chart(app, "chart")
for index in range(int(sys.argv[1])):
    exactly = {"deviceClassName": "h100", "count": index % 8 + 1}
    template = ApiObject(
        chart,
        f"t{index}",
        api_version="resource.k8s.io/v1",
        kind="ResourceClaimTemplate",
        metadata={"name": f"t{index}"},
    )
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    template.add_json_patch(JsonPatch.add("/spec", spec))
sys.stdout.write(app.synth_yaml())
