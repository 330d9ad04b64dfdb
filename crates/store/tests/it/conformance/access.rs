//! After any sequence of changes, the access of every account matches a simple model.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    id::AccountId,
    verifier::VerifierRef,
    workflow::{AccessRole, NewBinding, OwnershipFilter, VerifierRole, WorkflowSelector},
};
use jurat_store::{
    Behalf, OwnershipChange, Store, VerifierQuery, WorkflowGrantOrder, WorkflowSave, WriteOutcome,
};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

use super::workflows::{
    behalf, change, draft, grant, grant_of, join, listed, revoke, saved, team, user,
};
use crate::{
    backend::Backend,
    conformance::verifiers::deployed,
    samples::{at, deploy},
};

const USERS: usize = 3;
const TEAMS: usize = 2;
const WORKFLOWS: usize = 4;
const VERIFIERS: usize = 4;

/// An action. Numbers name users, teams, workflows and verifiers.
#[derive(Debug, Clone)]
enum Step {
    /// The owner saves a version that names some verifiers, or carries them forward.
    Save {
        workflow: usize,
        bind: Option<BTreeSet<usize>>,
    },
    Grant {
        by: usize,
        workflow: usize,
        to: usize,
        role: AccessRole,
        with_history: bool,
    },
    Revoke {
        by: usize,
        workflow: usize,
        from: usize,
    },
    Leave {
        who: usize,
        workflow: usize,
    },
    Join {
        who: usize,
        team: usize,
    },
    Part {
        who: usize,
        team: usize,
    },
    Archive {
        by: usize,
        workflow: usize,
        is_away: bool,
    },
    Give {
        workflow: usize,
        to: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let workflow = 0..WORKFLOWS;
    let who = 0..USERS;
    let grantee = 0..USERS + TEAMS;
    let role = prop::sample::select(vec![AccessRole::View, AccessRole::Edit, AccessRole::Admin]);
    let bind = prop::option::of(prop::collection::btree_set(0..VERIFIERS, 0..3));
    let step = prop_oneof![
        3 => (workflow.clone(), bind).prop_map(|(workflow, bind)| Step::Save { workflow, bind }),
        5 => (who.clone(), workflow.clone(), grantee.clone(), role, any::<bool>()).prop_map(
            |(by, workflow, to, role, with_history)| {
                Step::Grant { by, workflow, to, role, with_history }
            }
        ),
        2 => (who.clone(), workflow.clone(), grantee)
            .prop_map(|(by, workflow, from)| Step::Revoke { by, workflow, from }),
        1 => (who.clone(), workflow.clone())
            .prop_map(|(who, workflow)| Step::Leave { who, workflow }),
        2 => (who.clone(), 0..TEAMS).prop_map(|(who, team)| Step::Join { who, team }),
        1 => (who.clone(), 0..TEAMS).prop_map(|(who, team)| Step::Part { who, team }),
        2 => (who.clone(), workflow.clone(), any::<bool>())
            .prop_map(|(by, workflow, is_away)| Step::Archive { by, workflow, is_away }),
        1 => (workflow, who).prop_map(|(workflow, to)| Step::Give { workflow, to }),
    ];
    prop::collection::vec(step, 30)
}

/// A workflow in the model.
#[derive(Debug, Clone)]
struct Known {
    id: String,
    token: String,
    owner: usize,
    version: u32,
    is_away: bool,
    bound: BTreeSet<usize>,
    /// Role and floor of each user or team.
    grants: BTreeMap<usize, (AccessRole, u32)>,
}

#[derive(Debug)]
struct Model {
    workflows: Vec<Known>,
    /// The owner of each verifier.
    verifiers: Vec<usize>,
    members: BTreeSet<(usize, usize)>,
}

impl Model {
    /// Role and floor of a user on a workflow.
    fn reach(&self, who: usize, known: &Known) -> Option<(AccessRole, u32)> {
        if known.owner == who {
            return Some((AccessRole::Owner, 0));
        }
        if known.is_away {
            return None;
        }
        let is_principal = |grantee: usize| {
            grantee == who || (USERS <= grantee && self.members.contains(&(who, grantee - USERS)))
        };
        let held = known.grants.iter().filter(|(grantee, _)| is_principal(**grantee));
        held.map(|(_, held)| *held).reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)))
    }

    fn verifier_reach(&self, who: usize, verifier: usize) -> Option<VerifierRole> {
        if self.verifiers[verifier] == who {
            return Some(VerifierRole::Owner);
        }
        let names = self.workflows.iter().filter(|known| known.bound.contains(&verifier));
        names.filter_map(|known| Some(self.reach(who, known)?.0.on_verifiers())).max()
    }

    /// Whether a workflow can be transferred with everything that it names.
    fn can_go(&self, at: usize) -> bool {
        let others = self.workflows.iter().enumerate().filter(|(other, _)| *other != at);
        let mut bound = others.flat_map(|(_, known)| &known.bound);
        !bound.any(|verifier| self.workflows[at].bound.contains(verifier))
    }
}

struct World<'a> {
    backend: &'a Backend,
    accounts: Vec<AccountId>,
    verifier_ids: Vec<String>,
    model: Model,
    number: u32,
}

pub(crate) async fn access_matches_the_model(backend: &Backend) {
    let mut runner = TestRunner::deterministic();
    for turn in 0..8 {
        let mut world = World::new(backend, turn).await;
        for step in steps().new_tree(&mut runner).unwrap().current() {
            world.walk(&step).await;
            world.compare(&step).await;
        }
    }
}

impl<'a> World<'a> {
    async fn new(backend: &'a Backend, turn: u32) -> Self {
        let store = &*backend.store;
        let mut accounts = Vec::new();
        for who in 0..USERS {
            accounts.push(user(store, &format!("t{turn}u{who}")).await);
        }
        for who in 0..TEAMS {
            accounts.push(team(backend, &format!("t{turn}team{who}")).await);
        }
        let (mut verifiers, mut verifier_ids) = (Vec::new(), Vec::new());
        let mut number = turn * 1_000;
        for verifier in 0..VERIFIERS {
            number += 1;
            let owner = verifier % USERS;
            let name = format!("v{verifier}");
            let made = deployed(store, &deploy(&accounts[owner], &name, number)).await;
            verifiers.push(owner);
            verifier_ids.push(made.verifier.id);
        }
        let mut workflows = Vec::new();
        for workflow in 0..WORKFLOWS {
            number += 1;
            let owner = workflow % USERS;
            let save = draft(&accounts[owner], &format!("w{workflow}"), number);
            let saved = saved(store, &save).await.workflow;
            workflows.push(Known {
                id: saved.id,
                token: saved.version_token,
                owner,
                version: 1,
                is_away: false,
                bound: BTreeSet::new(),
                grants: BTreeMap::new(),
            });
        }
        let model = Model { workflows, verifiers, members: BTreeSet::new() };
        Self { backend, accounts, verifier_ids, model, number }
    }

    fn store(&self) -> &'a Store {
        &self.backend.store
    }

    fn which(&self, workflow: usize) -> WorkflowSelector {
        WorkflowSelector::Id(self.model.workflows[workflow].id.clone())
    }

    /// Applies the step to the store and to the model.
    async fn walk(&mut self, step: &Step) {
        match step.clone() {
            Step::Save { workflow, bind } => self.save(workflow, bind).await,
            Step::Grant { by, workflow, to, role, with_history } => {
                let order =
                    grant_of(&self.accounts[by], self.which(workflow), &self.accounts[to], role);
                let order = WorkflowGrantOrder { with_history, ..order };
                let is_done = matches!(grant(self.store(), &order).await, WriteOutcome::Done(_));
                assert_eq!(is_done, self.granted(by, workflow, to, (role, with_history)));
            }
            Step::Revoke { by, workflow, from } => self.revoke(by, workflow, from).await,
            Step::Leave { who, workflow } => {
                let (account, which) = (&self.accounts[who], self.which(workflow));
                let order = change(account, which);
                let left = self.store().workflows().leave(&behalf(account), &order, None).await;
                let known = &self.model.workflows[workflow];
                let may = known.owner != who && self.model.reach(who, known).is_some();
                assert_eq!(matches!(left.unwrap(), WriteOutcome::Done(_)), may);
                if may {
                    self.model.workflows[workflow].grants.remove(&who);
                }
            }
            Step::Join { who, team } => {
                if self.model.members.insert((who, team)) {
                    let team = &self.accounts[USERS + team];
                    join(self.backend, team, &self.accounts[who]).await;
                }
            }
            Step::Part { who, team } => {
                self.model.members.remove(&(who, team));
                let sql = format!(
                    "delete from team_members where team_id = '{}' and account_id = '{}'",
                    self.accounts[USERS + team],
                    self.accounts[who]
                );
                self.backend.tamper(&sql).await.unwrap();
            }
            Step::Archive { by, workflow, is_away } => self.archive(by, workflow, is_away).await,
            Step::Give { workflow, to } => self.give(workflow, to).await,
        }
    }

    async fn save(&mut self, workflow: usize, bind: Option<BTreeSet<usize>>) {
        self.number += 1;
        let known = self.model.workflows[workflow].clone();
        // Nobody binds the verifiers of others.
        let owns = |verifier: &usize| self.model.verifiers[*verifier] == known.owner;
        let bind = bind.map(|bind| bind.into_iter().filter(owns).collect::<BTreeSet<_>>());
        let bindings = bind.as_ref().map(|bind| {
            let named = |verifier: &usize| NewBinding {
                name: format!("b{verifier}"),
                verifier: VerifierRef::parse(&self.verifier_ids[*verifier]).unwrap(),
            };
            bind.iter().map(named).collect()
        });
        let name = format!("w{workflow}");
        let save = WorkflowSave {
            bindings,
            target: jurat_store::SaveTarget::Id(known.id.clone()),
            expected_token: Some(known.token.clone()),
            ..draft(&self.accounts[known.owner], &name, self.number)
        };
        let written = super::workflows::try_save(self.store(), &save).await;
        assert_eq!(matches!(written, WriteOutcome::Done(_)), !known.is_away);
        if let WriteOutcome::Done(saved) = written {
            let known = &mut self.model.workflows[workflow];
            known.version += 1;
            known.token = saved.workflow.version_token;
            known.bound = bind.unwrap_or_else(|| known.bound.clone());
        }
    }

    fn granted(
        &mut self,
        by: usize,
        workflow: usize,
        to: usize,
        (role, with_history): (AccessRole, bool),
    ) -> bool {
        let known = &self.model.workflows[workflow];
        let Some((own, floor)) = self.model.reach(by, known) else { return false };
        let sees_team = to < USERS || self.model.members.contains(&(by, to - USERS));
        if own < AccessRole::Admin || own < role || to == known.owner || !sees_team {
            return false;
        }
        let known = &mut self.model.workflows[workflow];
        let floor = if with_history { floor } else { known.version };
        let floor = known.grants.get(&to).map_or(floor, |before| before.1.min(floor));
        known.grants.insert(to, (role, floor));
        true
    }

    async fn revoke(&mut self, by: usize, workflow: usize, from: usize) {
        let which = self.which(workflow);
        let ended = revoke(self.store(), &self.accounts[by], which, &self.accounts[from]).await;
        let known = &self.model.workflows[workflow];
        let may = self.model.reach(by, known).is_some_and(|(role, _)| AccessRole::Admin <= role);
        let was_there = known.grants.contains_key(&from);
        let is_known = from < USERS || self.model.members.contains(&(by, from - USERS));
        assert_eq!(ended.ok(), (may && (was_there || is_known)).then_some(was_there));
        if may {
            self.model.workflows[workflow].grants.remove(&from);
        }
    }

    async fn archive(&mut self, by: usize, workflow: usize, is_away: bool) {
        let (sharing, account) = (self.store().workflows(), &self.accounts[by]);
        let order = change(account, self.which(workflow));
        let changed = if is_away {
            sharing.archive(&behalf(account), &order, None).await
        } else {
            sharing.unarchive(&behalf(account), &order, None).await
        };
        let may = self.model.workflows[workflow].owner == by;
        assert_eq!(matches!(changed.unwrap(), WriteOutcome::Done(_)), may);
        if may {
            self.model.workflows[workflow].is_away = is_away;
        }
    }

    async fn give(&mut self, workflow: usize, to: usize) {
        let known = &self.model.workflows[workflow];
        let giving = OwnershipChange {
            workflow_id: known.id.clone(),
            from: self.accounts[known.owner].clone(),
            to: self.accounts[to].clone(),
            at: at(90),
        };
        let given = self.store().workflows().give(&Behalf::Platform, &giving, None).await;
        let goes = known.owner == to || self.model.can_go(workflow);
        assert_eq!(given.unwrap() == WriteOutcome::Done(()), goes);
        if goes {
            let known = &mut self.model.workflows[workflow];
            known.owner = to;
            known.grants.remove(&to);
            for verifier in &known.bound {
                self.model.verifiers[*verifier] = to;
            }
        }
    }

    /// The workflows that each user can reach, in the store and in the model.
    async fn compare(&self, step: &Step) {
        for who in 0..USERS {
            let account = &self.accounts[who];
            let found = listed(self.store(), account, OwnershipFilter::All).await;
            let found: BTreeMap<_, _> = found
                .into_iter()
                .map(|reached| (reached.workflow.id.clone(), (reached.role, reached.floor)))
                .collect();
            let known = self.model.workflows.iter().filter(|known| !known.is_away);
            let expected: BTreeMap<_, _> = known
                .filter_map(|known| Some((known.id.clone(), self.model.reach(who, known)?)))
                .collect();
            assert_eq!(found, expected, "{step:?}");
            let query = VerifierQuery { caller: account.clone(), after: None, limit: 100 };
            let found = self.store().verifiers().list(&behalf(account), &query).await;
            let found: BTreeMap<_, _> = found
                .unwrap()
                .into_iter()
                .map(|reached| (reached.verifier.id, reached.role))
                .collect();
            let expected: BTreeMap<_, _> = (0..VERIFIERS)
                .filter_map(|verifier| {
                    let role = self.model.verifier_reach(who, verifier)?;
                    Some((self.verifier_ids[verifier].clone(), role))
                })
                .collect();
            assert_eq!(found, expected, "{step:?}");
        }
    }
}
