//! kwok: nodes, and pods that become what their images' names say.

use std::process::Command;

use belay_components::Binary;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    TestbedError,
    cluster::{Cluster, FIELD_MANAGER, chain},
    process::{Process, write_private},
    wait,
};

/// Starts kwok with so many nodes and waits until they are ready and take pods.
pub(crate) async fn start(cluster: &Cluster, count: u32) -> Result<Process, TestbedError> {
    let folder = cluster.run().folder();
    let stages = folder.join("stages.yaml");
    write_private(&stages, include_str!("stages.yaml"))?;
    let nodes: Api<Node> = Api::all(cluster.admin()?);
    for number in 0..count {
        let name = format!("kwok-{number}");
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": {
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name, "type": "kwok",
            }},
        });
        nodes
            .patch(&name, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(node))
            .await
            .map_err(TestbedError::api(format!("create node {name}")))?;
    }
    let mut command = Command::new(cluster.components().binary(Binary::Kwok)?);
    command.args([
        &format!("--kubeconfig={}", cluster.admin_kubeconfig().display()),
        &format!("--config={}", stages.display()),
        "--manage-all-nodes",
        // Without a lease the node controller takes the nodes for lost.
        "--node-lease-duration-seconds=40",
    ]);
    let process = cluster.run().spawn("kwok", command)?;
    let admitted = |node: &Node| {
        let ready = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = ready.into_iter().any(|c| c.type_ == "Ready" && c.status == "True");
        let taints: Vec<&Taint> =
            node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).collect();
        ready && taints.is_empty()
    };
    process
        .ready(wait::SOON, || async {
            let list = nodes.list(&ListParams::default()).await.map_err(|error| chain(&error))?;
            let up = list.items.iter().filter(|node| admitted(node)).count();
            if up >= count as usize {
                Ok(())
            } else {
                Err(format!("{up} of {count} nodes are ready and untainted"))
            }
        })
        .await?;
    Ok(process)
}
