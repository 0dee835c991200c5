//! The rules of a run, its simulated process, and its trace.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::Request;
use tokio::sync::watch;

use super::{
    Call, CallId, Calls, Fault, FaultLayer, Nth, Outcome, Rule, Trace,
    call::pairs,
    layer::{self, Protocol},
};

/// What is to happen to the calls of a run, and what did. Clones are the same plan.
///
/// Rules may be added at any time. Every rule counts the calls that match it, across clients and
/// processes, whether or not it is the one that decides; the first whose turn it is decides.
#[derive(Clone)]
pub struct FaultPlan {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// The last process that has ended. Sent to only with the state locked, so that no call is let
    /// through after a crash.
    ended: watch::Sender<u64>,
}

struct State {
    rules: Vec<(Rule, u32)>,
    aliases: Vec<(String, String)>,
    body_limit: Option<usize>,
    seen: HashMap<CallId, u32>,
    calls: Vec<Call>,
    process: u64,
}

impl Default for FaultPlan {
    fn default() -> Self {
        Self::new()
    }
}

impl FaultPlan {
    /// A plan without faults: a trace.
    pub fn new() -> Self {
        let state = State {
            rules: Vec::new(),
            aliases: Vec::new(),
            body_limit: None,
            seen: HashMap::new(),
            calls: Vec::new(),
            process: 1,
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), ended: watch::Sender::new(0) }) }
    }

    /// Adds a rule behind those there are.
    pub fn inject(&self, calls: Calls, nth: Nth, fault: Fault) {
        self.lock().rules.push((Rule { calls, nth, fault }, 0));
    }

    /// Removes all rules: from now on every call goes through.
    pub fn clear(&self) {
        self.lock().rules.clear();
    }

    /// The rules, in order.
    pub fn rules(&self) -> Vec<Rule> {
        self.lock().rules.iter().map(|(rule, _)| rule.clone()).collect()
    }

    /// Shows `real` as `shown` wherever it is part of a namespace, name, host or path.
    ///
    /// For what differs from run to run, such as a test's namespace or a port of loopback. Rules and
    /// traces then speak of `shown` only.
    pub fn alias(&self, real: &str, shown: &str) {
        if !real.is_empty() {
            self.lock().aliases.push((real.to_owned(), shown.to_owned()));
        }
    }

    /// Keeps the first `limit` bytes of each request's body in the trace.
    pub fn keep_bodies(&self, limit: usize) {
        self.lock().body_limit = Some(limit);
    }

    /// The calls so far.
    pub fn trace(&self) -> Trace {
        Trace { calls: self.lock().calls.clone() }
    }

    /// Looks at the calls so far without a copy of them. No call goes through meanwhile.
    pub fn look<T>(&self, look: impl FnOnce(&[Call]) -> T) -> T {
        look(&self.lock().calls)
    }

    /// The layer for a client of the API server.
    pub fn kubernetes(&self) -> FaultLayer {
        self.layer(Protocol::Kubernetes { prefix: String::new() })
    }

    /// The layer for a client of any other server.
    pub fn http(&self) -> FaultLayer {
        self.layer(Protocol::Http)
    }

    pub(crate) fn layer(&self, protocol: Protocol) -> FaultLayer {
        let process = self.lock().process;
        FaultLayer::new(Life { plan: self.clone(), process }, protocol)
    }

    /// Waits until the current process has crashed. Returns at once if it already has.
    pub async fn crashed(&self) {
        let process = self.lock().process;
        Life { plan: self.clone(), process }.ended().await;
    }

    /// Whether the current process has crashed.
    pub fn has_crashed(&self) -> bool {
        let state = self.lock();
        *self.shared.ended.borrow() >= state.process
    }

    /// Ends the current process, as a crash between two calls does.
    pub fn crash(&self) {
        let state = self.lock();
        self.shared.end(state.process);
    }

    /// Begins the next process, ending the current one if it has not crashed.
    ///
    /// Clients that are made from now on belong to it; those made before stay silent. Rules go on
    /// counting and the trace goes on.
    pub fn restart(&self) {
        let mut state = self.lock();
        self.shared.end(state.process);
        state.process += 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Only with the state locked.
    fn end(&self, process: u64) {
        self.ended.send_if_modified(|ended| {
            let later = process > *ended;
            *ended = process.max(*ended);
            later
        });
    }
}

impl State {
    fn decide(&mut self, id: &CallId) -> Fault {
        let mut fault = None;
        for (rule, count) in &mut self.rules {
            if rule.calls.contains(id) {
                *count = count.saturating_add(1);
                if fault.is_none() && rule.nth.includes(*count) {
                    fault = Some(rule.fault.clone());
                }
            }
        }
        fault.unwrap_or(Fault::Pass)
    }
}

/// One process of a plan.
#[derive(Clone)]
pub(crate) struct Life {
    plan: FaultPlan,
    process: u64,
}

impl Life {
    /// Whether the process has ended.
    pub(crate) fn is_over(&self) -> bool {
        *self.plan.shared.ended.borrow() >= self.process
    }

    /// Waits for that.
    pub(crate) async fn ended(&self) {
        let mut ended = self.plan.shared.ended.subscribe();
        // The sender is in the plan and thus cannot be gone.
        let _ = ended.wait_for(|ended| *ended >= self.process).await;
    }

    /// The future's result, or nothing for ever once the process has ended. The future is then
    /// dropped, as an ended process' connections are.
    pub(crate) async fn outlive<F: Future>(&self, future: F) -> F::Output {
        let result = tokio::select! {
            biased;
            () = self.ended() => None,
            result = future => Some(result),
        };
        match result {
            Some(result) => result,
            None => std::future::pending().await,
        }
    }

    /// Ends the process.
    pub(crate) fn crash(&self) {
        let _state = self.plan.lock();
        self.plan.shared.end(self.process);
    }

    /// Notes a call and decides what becomes of it. `None` if the process has ended before.
    pub(crate) fn admit<B: 'static>(
        &self,
        protocol: &Protocol,
        request: &Request<B>,
    ) -> Option<(Fault, Record)> {
        let mut state = self.plan.lock();
        if self.is_over() {
            return None;
        }
        let mut id = protocol.identify(request);
        for (real, shown) in &state.aliases {
            id.replace(real, shown);
        }
        let count = state.seen.entry(id.clone()).or_default();
        *count = count.saturating_add(1);
        id.nth = *count;
        let fault = state.decide(&id);
        let body = state.body_limit.and_then(|limit| {
            let body = layer::peek(request.body())?;
            Some(Bytes::copy_from_slice(body.get(..limit).unwrap_or(&body)))
        });
        let index = state.calls.len();
        state.calls.push(Call {
            id,
            process: self.process,
            query: pairs(request),
            body,
            fault: Some(fault.clone()).filter(|fault| *fault != Fault::Pass),
            outcome: if fault.sends() { Outcome::InFlight } else { Outcome::NotSent },
        });
        if fault == Fault::CrashBefore {
            self.plan.shared.end(self.process);
        }
        Some((fault, Record { plan: self.plan.clone(), index }))
    }
}

/// The place of a call in the trace.
pub(crate) struct Record {
    plan: FaultPlan,
    index: usize,
}

impl Record {
    /// Notes what the server said, once.
    pub(crate) fn close(&self, outcome: Outcome) {
        let mut state = self.plan.lock();
        if let Some(call) = state.calls.get_mut(self.index)
            && call.outcome == Outcome::InFlight
        {
            call.outcome = outcome;
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.close(Outcome::Dropped);
    }
}

/// All plans with a single fault for a run that makes these calls: for each call in order, each
/// fault in order.
///
/// The call is told by its identity, not by its place, so calls of independent tasks may come in
/// another order than in the reference run. A trace may be narrowed before
/// (`plans_for(&trace.writes(), …)`). After a run, an empty `plan.trace().faults()` says that the
/// fault was never met. Aliases are not part of a trace: give each plan those of its run.
pub fn plans_for(trace: &Trace, faults: &[Fault]) -> Vec<FaultPlan> {
    let single = |call: &Call, fault: &Fault| {
        let plan = FaultPlan::new();
        plan.inject(Calls::same_as(&call.id), Nth::Only(call.id.nth), fault.clone());
        plan
    };
    let calls = trace.calls().iter();
    calls.flat_map(|call| faults.iter().map(move |fault| single(call, fault))).collect()
}

/// Its rules.
impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self.rules().iter().map(Rule::to_string).collect();
        f.write_str(if rules.is_empty() { "no faults" } else { "" })?;
        f.write_str(&rules.join("; "))
    }
}

impl fmt::Debug for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultPlan({self})")
    }
}
