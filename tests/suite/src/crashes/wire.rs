//! Finds the call that is to be cut among those to the API server, by what it says.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use belay_testkit::fault::{CallId, FaultPlan, Nth};
use bytes::Bytes;
use futures::FutureExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use tower::Service;

use super::{
    calls::{Cut, Mark, rule},
    plain::Names,
};

/// What waits for its call. It outlives processes, as the plan does.
#[derive(Clone)]
pub(super) struct Trap(Arc<Mutex<State>>);

struct State {
    plan: FaultPlan,
    names: Names,
    cut: Option<Cut>,
    phase: Option<&'static str>,
    seen: HashMap<Mark, u32>,
}

impl Trap {
    pub(super) fn new(plan: &FaultPlan, names: Names, cut: Option<Cut>) -> Self {
        let (plan, seen) = (plan.clone(), HashMap::new());
        Self(Arc::new(Mutex::new(State { plan, names, cut, phase: None, seen })))
    }

    /// From now on calls are of this phase.
    pub(super) fn phase(&self, name: &'static str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.phase = Some(name);
        state.seen.clear();
        let State { plan, cut, .. } = &*state;
        // Calls to other servers pass a relay, where nothing is told by what it says.
        if let Some(cut) = cut.as_ref().filter(|cut| cut.call.phase == name)
            && !cut.call.is_to_kubernetes()
        {
            plan.inject(cut.call.rule(), Nth::Only(cut.call.nth), cut.fault.clone());
        }
    }

    /// Looks at a call that is about to pass the plan.
    fn look(&self, request: &Request<Body>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { plan, names, cut: Some(cut), phase: Some(phase), seen } = &mut *state else {
            return;
        };
        if cut.call.phase != *phase {
            return;
        }
        let id = CallId::kubernetes(request, "");
        let mark = Mark::of(&id, bytes(request.body()).as_deref(), names);
        if mark != cut.call.mark {
            return;
        }
        let count = seen.entry(mark).or_default();
        *count = count.saturating_add(1);
        if *count == cut.call.nth {
            // The next one like it is this one.
            plan.inject(rule_here(&id, names), Nth::Only(1), cut.fault.clone());
            state.cut = None;
        }
    }
}

/// The rule speaks of names as the plan shows them.
fn rule_here(id: &CallId, names: &Names) -> belay_testkit::fault::Calls {
    let mut id = id.clone();
    if let belay_testkit::fault::Target::Resource(resource) = &mut id.target {
        for name in resource.namespace.iter_mut().chain(&mut resource.name) {
            *name = names.text(name);
        }
    }
    rule(&id)
}

fn bytes(body: &Body) -> Option<Bytes> {
    Some(body.try_clone()?.collect().now_or_never()?.ok()?.to_bytes())
}

/// A service above the plan's layer that shows the trap every call.
#[derive(Clone)]
pub(super) struct Trapped<S> {
    pub(super) trap: Trap,
    pub(super) inner: S,
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for Trapped<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> S::Future {
        self.trap.look(&request);
        self.inner.call(request)
    }
}
