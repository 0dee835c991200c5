//! How a request is read.

use belay_testkit::fault::{CallId, Target};
use rstest::rstest;

use crate::support::{get, id, request};

#[rstest]
// Core group
#[case("GET", "/api/v1/namespaces/shop/pods/web-1", "", "GET v1 pods shop/web-1")]
#[case("HEAD", "/api/v1/namespaces/shop/pods/web-1", "", "GET v1 pods shop/web-1")]
#[case("GET", "/api/v1/namespaces/shop/pods", "", "LIST v1 pods shop/")]
#[case("GET", "/api/v1/namespaces/shop/pods?", "", "LIST v1 pods shop/")]
#[case("GET", "/api/v1/namespaces/shop/pods?&limit=500", "", "LIST v1 pods shop/")]
#[case("GET", "/api/v1/pods?limit=500", "", "LIST v1 pods")]
#[case("POST", "/api/v1/namespaces/shop/pods", "", "CREATE v1 pods shop/")]
#[case("PUT", "/api/v1/namespaces/shop/pods/web-1", "", "UPDATE v1 pods shop/web-1")]
#[case("DELETE", "/api/v1/namespaces/shop/pods/web-1", "", "DELETE v1 pods shop/web-1")]
#[case("DELETE", "/api/v1/namespaces/shop/pods", "", "DELETECOLLECTION v1 pods shop/")]
#[case("OPTIONS", "/api/v1/namespaces/shop/pods", "", "OPTIONS v1 pods shop/")]
// Cluster-scoped, and the namespace itself
#[case("GET", "/api/v1/nodes/n1", "", "GET v1 nodes n1")]
#[case(
    "PATCH",
    "/api/v1/nodes/n1/status",
    "application/merge-patch+json",
    "PATCH(merge) v1 nodes/status n1"
)]
#[case("GET", "/api/v1/namespaces", "", "LIST v1 namespaces")]
#[case("POST", "/api/v1/namespaces", "", "CREATE v1 namespaces")]
#[case("GET", "/api/v1/namespaces/shop", "", "GET v1 namespaces shop")]
#[case("DELETE", "/api/v1/namespaces/shop", "", "DELETE v1 namespaces shop")]
#[case("PUT", "/api/v1/namespaces/shop/finalize", "", "UPDATE v1 namespaces/finalize shop")]
#[case("PUT", "/api/v1/namespaces/shop/status", "", "UPDATE v1 namespaces/status shop")]
#[case("GET", "/api/v1/namespaces/namespaces/namespaces", "", "LIST v1 namespaces namespaces/")]
// Groups
#[case(
    "GET",
    "/apis/apps/v1/namespaces/shop/deployments/web",
    "",
    "GET apps/v1 deployments shop/web"
)]
#[case("GET", "/apis/belay.dev/v1alpha1/releases", "", "LIST belay.dev/v1alpha1 releases")]
#[case(
    "GET",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin",
    "",
    "GET rbac.authorization.k8s.io/v1 clusterroles admin"
)]
#[case(
    "POST",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "",
    "CREATE authentication.k8s.io/v1 tokenreviews"
)]
// Patches
#[case(
    "PATCH",
    "/apis/apps/v1/namespaces/shop/deployments/web?force=true",
    "application/apply-patch+yaml",
    "PATCH(apply) apps/v1 deployments shop/web"
)]
#[case(
    "PATCH",
    "/apis/apps/v1/namespaces/shop/deployments/web",
    "application/apply-patch+cbor",
    "PATCH(apply) apps/v1 deployments shop/web"
)]
#[case(
    "PATCH",
    "/apis/apps/v1/namespaces/shop/deployments/web",
    "Application/JSON-Patch+JSON; charset=utf-8",
    "PATCH(json) apps/v1 deployments shop/web"
)]
#[case(
    "PATCH",
    "/apis/apps/v1/namespaces/shop/deployments/web",
    "application/strategic-merge-patch+json",
    "PATCH(strategic) apps/v1 deployments shop/web"
)]
#[case(
    "PATCH",
    "/apis/apps/v1/namespaces/shop/deployments/web",
    "text/plain",
    "PATCH(?) apps/v1 deployments shop/web"
)]
#[case(
    "PATCH",
    "/apis/apps/v1/namespaces/shop/deployments/web",
    "",
    "PATCH(?) apps/v1 deployments shop/web"
)]
// Watches
#[case(
    "GET",
    "/apis/apps/v1/deployments?watch=true&resourceVersion=7",
    "",
    "WATCH apps/v1 deployments"
)]
#[case("GET", "/apis/apps/v1/deployments?watch=1", "", "WATCH apps/v1 deployments")]
#[case("GET", "/apis/apps/v1/deployments?watch", "", "WATCH apps/v1 deployments")]
#[case("GET", "/apis/apps/v1/deployments?watch=False", "", "LIST apps/v1 deployments")]
#[case("GET", "/apis/apps/v1/deployments?watch=0", "", "LIST apps/v1 deployments")]
#[case(
    "GET",
    "/apis/apps/v1/deployments?labelSelector=watch%3Dtrue",
    "",
    "LIST apps/v1 deployments"
)]
#[case("GET", "/api/v1/namespaces/shop/pods/web-1?watch=true", "", "GET v1 pods shop/web-1")]
#[case("GET", "/api/v1/watch/namespaces/shop/pods", "", "WATCH v1 pods shop/")]
#[case(
    "GET",
    "/api/v1/namespaces/shop/pods?watch=true&fieldSelector=metadata.name%3Dweb-1",
    "",
    "WATCH v1 pods shop/web-1"
)]
#[case(
    "GET",
    "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1,metadata.name%3D%3Dweb-1",
    "",
    "LIST v1 pods web-1"
)]
#[case("GET", "/api/v1/pods?fieldSelector=metadata.name%3D", "", "LIST v1 pods")]
// Subresources
#[case(
    "PATCH",
    "/apis/apps/v1/namespaces/shop/deployments/web/status",
    "application/apply-patch+yaml",
    "PATCH(apply) apps/v1 deployments/status shop/web"
)]
#[case(
    "GET",
    "/apis/apps/v1/namespaces/shop/deployments/web/scale",
    "",
    "GET apps/v1 deployments/scale shop/web"
)]
#[case(
    "POST",
    "/api/v1/namespaces/shop/serviceaccounts/belay/token",
    "",
    "CREATE v1 serviceaccounts/token shop/belay"
)]
#[case(
    "POST",
    "/api/v1/namespaces/shop/pods/web-1/eviction",
    "",
    "CREATE v1 pods/eviction shop/web-1"
)]
#[case(
    "GET",
    "/api/v1/namespaces/shop/pods/web-1/proxy/metrics/all",
    "",
    "GET v1 pods/proxy shop/web-1"
)]
// Discovery and other paths
#[case("GET", "/api", "", "GET /api")]
#[case("GET", "/apis", "", "GET /apis")]
#[case("GET", "/api/v1", "", "GET /api/v1")]
#[case("GET", "/api/v1/watch", "", "GET /api/v1/watch")]
#[case("GET", "/apis/apps", "", "GET /apis/apps")]
#[case("GET", "/apis/apps/v1", "", "GET /apis/apps/v1")]
#[case("GET", "/", "", "GET /")]
#[case("GET", "/version", "", "GET /version")]
#[case("GET", "/openapi/v3/apis/apps/v1", "", "GET /openapi/v3/apis/apps/v1")]
#[case("POST", "/readyz", "", "POST /readyz")]
// Hostile
#[case("GET", "/api/v1/pods/", "", "LIST v1 pods")]
#[case("GET", "//api/v1/pods//", "", "LIST v1 pods")]
#[case("GET", "/api//v1/pods", "", "GET /api//v1/pods")]
#[case("GET", "/api/v1/namespaces//pods", "", "LIST v1 pods")]
#[case("GET", "/api/v1/namespaces//pods/web-1", "", "GET v1 pods web-1")]
#[case("GET", "/api/v1/namespaces/shop//web-1", "", "GET /api/v1/namespaces/shop//web-1")]
#[case("GET", "/api/v1/namespaces/shop/pods//log", "", "GET /api/v1/namespaces/shop/pods//log")]
#[case("GET", "/apis//v1/pods", "", "GET /apis//v1/pods")]
#[case("GET", "/apis/apps//pods", "", "GET /apis/apps//pods")]
#[case("GET", "/API/v1/pods", "", "GET /API/v1/pods")]
#[case("GET", "/api/v1/namespaces/shop/pods/..", "", "GET v1 pods shop/..")]
#[case("GET", "/api/v1/namespaces/sh%6Fp/pods/%77eb", "", "GET v1 pods shop/web")]
#[case(
    "GET",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
    "",
    "GET rbac.authorization.k8s.io/v1 clusterroles system:node"
)]
#[case("PUT", "/api/v1/namespaces/shop/pods/web%2Fstatus", "", "UPDATE v1 pods/status shop/web")]
#[case("GET", "/api/v1/namespaces/shop/pods/a%0Ab%1B", "", r"GET v1 pods shop/a\nb\u{1b}")]
#[case("GET", "/api/v1/namespaces/shop/pods/100%", "", "GET v1 pods shop/100%")]
#[case("GET", "/api/v1/namespaces/shop/pods/%zz", "", "GET v1 pods shop/%zz")]
#[case("GET", "/api/v1/namespaces/shop/pods/%ff", "", "GET v1 pods shop/%ff")]
#[case("GET", "/api/v1/namespaces/shop/pods/%C3%BC", "", "GET v1 pods shop/ü")]
fn a_kubernetes_request_is_read_as_the_api_server_reads_it(
    #[case] method: &str,
    #[case] uri: &str,
    #[case] content_type: &str,
    #[case] line: &str,
) {
    assert_eq!(id(&request(method, uri, content_type)).to_string(), line);
}

#[test]
fn a_very_long_name_is_kept_whole_and_shown_short() {
    let name = "n".repeat(60_000);
    let call = id(&get(&format!("/api/v1/namespaces/shop/pods/{name}")));
    assert_eq!(call.resource().unwrap().name, Some(name));
    let line = call.to_string();
    assert!(line.starts_with("GET v1 pods shop/nnn"), "{line}");
    assert!(line.ends_with("nnn…(+59747)"), "{line}");
}

#[test]
fn many_segments_are_no_trouble() {
    let call = id(&get(&format!("/api/v1{}", "/a".repeat(30_000))));
    assert_eq!(call.to_string(), "GET v1 a/a a");
    let call = id(&get(&"/".repeat(60_000)));
    assert!(matches!(call.target, Target::Path { .. }));
}

#[rstest]
#[case("/k8s/clusters/c-1", "/k8s/clusters/c-1/api/v1/pods", "LIST v1 pods")]
#[case("/k8s/clusters/c-1/", "/k8s/clusters/c-1/api/v1/pods", "LIST v1 pods")]
#[case("/", "/api/v1/pods", "LIST v1 pods")]
#[case("/ap", "/api/v1/pods", "LIST v1 pods")]
#[case("/k8s", "/other/api/v1/pods", "GET /other/api/v1/pods")]
#[case("/k8s", "/k8s", "GET ")]
fn the_path_of_the_base_url_is_left_out(
    #[case] prefix: &str,
    #[case] uri: &str,
    #[case] line: &str,
) {
    assert_eq!(CallId::kubernetes(&get(uri), prefix).to_string(), line);
}

#[rstest]
#[case(
    "GET",
    "https://api.github.com/repos/acme/web/releases?page=2",
    "GET api.github.com/repos/acme/web/releases"
)]
#[case("POST", "http://127.0.0.1:8080/api/v1/pods", "POST 127.0.0.1:8080/api/v1/pods")]
#[case("GET", "http://user:secret@ghcr.io/v2/", "GET ghcr.io/v2/")]
#[case("GET", "http://[::1]:80/v2/%2e%2E/a%2Fb", "GET [::1]:80/v2/%2e%2E/a%2Fb")]
#[case("HEAD", "/v2/acme/web/manifests/1.0", "HEAD registry:5000/v2/acme/web/manifests/1.0")]
#[case("PURGE", "http://a", "PURGE a/")]
fn a_plain_request_is_method_host_and_path(
    #[case] method: &str,
    #[case] uri: &str,
    #[case] line: &str,
) {
    let mut request = request(method, uri, "");
    request.headers_mut().insert("host", "registry:5000".parse().unwrap());
    assert_eq!(CallId::http(&request).to_string(), line);
}

#[rstest]
#[case("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web", true)]
#[case("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web?dryRun=All", false)]
#[case("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web?dryRun=", true)]
#[case("GET", "/apis/apps/v1/namespaces/shop/deployments/web", false)]
#[case("GET", "/api/v1/pods", false)]
#[case("GET", "/api/v1/pods?watch=true", false)]
#[case("POST", "/api/v1/namespaces/shop/events", true)]
#[case("PUT", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/belay", true)]
#[case("DELETE", "/api/v1/namespaces/shop/pods", true)]
#[case("DELETE", "/api/v1/namespaces/shop/pods/web-1", true)]
#[case("POST", "/api/v1/namespaces/shop/pods/web-1/eviction", true)]
#[case("POST", "/api/v1/namespaces/shop/serviceaccounts/belay/token", false)]
#[case("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false)]
#[case("POST", "/apis/authentication.k8s.io/v1/tokenreviews", false)]
#[case("GET", "/version", false)]
#[case("POST", "/version", true)]
fn a_write_is_what_leaves_something_behind(
    #[case] method: &str,
    #[case] uri: &str,
    #[case] is_write: bool,
) {
    assert_eq!(id(&request(method, uri, "")).is_write(), is_write);
}

#[test]
fn a_dry_run_is_another_call() {
    let uri = "/apis/apps/v1/namespaces/shop/deployments/web";
    let real = id(&request("PATCH", uri, ""));
    let dry = id(&request("PATCH", &format!("{uri}?dryRun=All"), ""));
    assert!(dry.dry_run && !real.dry_run);
    assert!(!real.is_same(&dry));
}
