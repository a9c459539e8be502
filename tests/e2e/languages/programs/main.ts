// Programs in TypeScript, run by Pulumi's Automation API in the project of the current folder:
//
//     node main.js preview|up platform NAMESPACE
//     node main.js preview|up objects FILE [POLICY-PACK]
import * as fs from "node:fs";

import * as pulumi from "@pulumi/pulumi";
import * as automation from "@pulumi/pulumi/automation";

import * as dra from "@dra-infra/dra-infra";

interface Manifest {
    apiVersion: string;
    kind: string;
    metadata: { name: string };
}

/** The platform that `platform.py` has in Python and YAML. */
function platform(space: string): void {
    const h100 = new dra.GpuDeviceClass(`${space}-h100`, {
        match: { product: "H100", memoryAtLeast: "79Gi" },
        labels: { team: "platform" },
    });
    new dra.GpuClaimTemplate("trainer", {
        deviceClass: h100.objectName,
        count: 4,
        configs: [{ timeSlicing: { interval: "Long" } }],
        namespace: space,
    });
    new dra.GpuClaimTemplate("ladder", {
        firstAvailable: [
            { name: "h100", deviceClass: h100.objectName, count: 2 },
            { name: "any", deviceClass: "gpu.nvidia.com", allDevices: true },
        ],
        namespace: space,
    });
    new dra.MigPartition("notebook", { profile: "1g.10gb", namespace: space });
    new dra.GpuTenant(`${space}-vision`, {
        quota: { [`${space}-h100`]: 8, "mig.nvidia.com": 7 },
        hard: { pods: "100" },
        templates: {
            trainer: { claim: { deviceClass: h100.objectName, count: 4 } },
            notebook: { mig: { profile: "1g.10gb" } },
        },
    });
}

class KubernetesObject extends pulumi.CustomResource {}

/** Plain objects, as classes of the vendor's SDK register them. */
function objects(file: string): void {
    for (const manifest of JSON.parse(fs.readFileSync(file, "utf-8")) as Manifest[]) {
        const version = manifest.apiVersion.includes("/") ? manifest.apiVersion : `core/${manifest.apiVersion}`;
        new KubernetesObject(`kubernetes:${version}:${manifest.kind}`, manifest.metadata.name, manifest, {
            version: "4.34.2",
        });
    }
}

async function main([command, program, argument, ...policyPacks]: string[]): Promise<void> {
    const stack = await automation.LocalWorkspace.createOrSelectStack(
        {
            stackName: "dev",
            projectName: "project",
            program: async () => (program === "platform" ? platform(argument) : objects(argument)),
        },
        { workDir: process.cwd() },
    );
    const onOutput = (text: string) => process.stdout.write(text);
    if (command === "up") {
        await stack.up({ onOutput, policyPacks });
    } else {
        await stack.preview({ onOutput, policyPacks });
    }
}

main(process.argv.slice(2)).catch((error) => {
    console.error(String(error.message ?? error));
    process.exit(1);
});
