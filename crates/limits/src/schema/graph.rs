//! The graph of subschemas: which subschema applies which, in place or to children.

use std::collections::{BTreeMap, BTreeSet};

use referencing::{Draft, Registry, Resolver, Retrieve, Uri};
use serde_json::{Map, Value};

use super::{
    MAX_ENUM, MAX_SUBSCHEMAS,
    error::{SchemaError, quote},
    keywords::{self, ApplicationTarget},
    scan::join,
};
use crate::pattern::{self, MAX_PATTERNS, MAX_STATES, PatternError};

/// The base that the validator assumes for a schema without an `$id`.
const DEFAULT_BASE: &str = "json-schema:///";

/// Every subschema; the root is the first.
#[derive(Debug)]
pub(super) struct SchemaGraph {
    pub(super) nodes: Vec<SchemaNode>,
}

#[derive(Debug, Default)]
pub(super) struct SchemaNode {
    /// Its path in the schema.
    pub(super) at: String,
    /// Direct subschemas that apply to the same value.
    pub(super) in_place: Vec<usize>,
    /// References, which apply to the same value. One target of each list applies.
    pub(super) references: Vec<Vec<usize>>,
    pub(super) named: Vec<usize>,
    pub(super) indexed: Vec<usize>,
    pub(super) each: Vec<usize>,
    pub(super) contains: Vec<usize>,
    pub(super) unevaluated: Vec<usize>,
    /// The cost of one application besides the subschemas.
    pub(super) weight: u64,
    /// States of the pattern for the value itself.
    pub(super) states: u64,
    /// States of the patterns for the names of members.
    pub(super) name_states: u64,
    pub(super) is_unique: bool,
    /// The number of its resource; each `$id` starts another.
    pub(super) resource: usize,
}

impl SchemaGraph {
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let draft = Draft::default().detect(schema);
        let resource = draft.create_resource_ref(schema);
        let base = resource.id().unwrap_or(DEFAULT_BASE);
        let at_id = || join("", draft.id_keyword());
        let base =
            referencing::uri::from_str(base).map_err(|e| SchemaError::bad_uri(&at_id(), &e))?;
        let registry = Registry::new()
            .retriever(NoRetrieval)
            .draft(known(draft))
            .add(base.as_str(), resource)
            .and_then(referencing::RegistryBuilder::prepare)
            .map_err(|error| SchemaError::bad_uri("", &error))?;
        let mut walk = SchemaVisitor::new(schema);
        walk.enter(SubschemaVisit {
            value: schema,
            at: String::new(),
            resolver: registry.resolver(base),
            draft,
            is_based: true,
        })?;
        walk.visit_all()?;
        Ok(Self { nodes: walk.nodes })
    }
}

/// A draft that the library accepts; an unknown one is refused by name when the walk reaches it.
fn known(draft: Draft) -> Draft {
    if draft == Draft::Unknown { Draft::default() } else { draft }
}

/// Replaces everything outside of the schema, so that nothing is ever read or fetched. A reference
/// that resolves to its empty answer is outside of the schema, and is refused for that.
struct NoRetrieval;

impl Retrieve for NoRetrieval {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Value::Object(Map::new()))
    }
}

struct SubschemaVisit<'r> {
    value: &'r Value,
    at: String,
    resolver: Resolver<'r>,
    draft: Draft,
    /// Whether the resolver already is at the subschema's own `$id`.
    is_based: bool,
}

struct SchemaReference<'r> {
    from: usize,
    keyword: &'static str,
    target: String,
    resolver: Resolver<'r>,
}

struct SchemaVisitor<'r> {
    nodes: Vec<SchemaNode>,
    /// The node of each value, by address; the schema is borrowed and does not move.
    by_address: BTreeMap<usize, usize>,
    /// The pointer of each container and boolean of the schema, by address.
    places: BTreeMap<usize, String>,
    resources: BTreeMap<String, usize>,
    dynamic_anchors: BTreeMap<String, BTreeSet<usize>>,
    recursive_anchors: BTreeSet<usize>,
    patterns: usize,
    /// States of all patterns so far.
    states: u64,
    visits: Vec<(usize, SubschemaVisit<'r>)>,
    references: Vec<SchemaReference<'r>>,
}

impl<'r> SchemaVisitor<'r> {
    fn new(schema: &Value) -> Self {
        let mut places = BTreeMap::new();
        let mut stack = vec![(schema, String::new())];
        while let Some((value, at)) = stack.pop() {
            match value {
                Value::Object(members) => {
                    stack.extend(members.iter().map(|(name, member)| (member, join(&at, name))));
                }
                Value::Array(items) => {
                    let items = items.iter().enumerate();
                    stack.extend(items.map(|(index, item)| (item, join(&at, &index.to_string()))));
                }
                Value::Bool(_) => {}
                Value::Null | Value::Number(_) | Value::String(_) => continue,
            }
            places.insert(address(value), at);
        }
        Self {
            nodes: Vec::new(),
            by_address: BTreeMap::new(),
            places,
            resources: BTreeMap::new(),
            dynamic_anchors: BTreeMap::new(),
            recursive_anchors: BTreeSet::new(),
            patterns: 0,
            states: 0,
            visits: Vec::new(),
            references: Vec::new(),
        }
    }

    /// Walks the known parts, then follows references, which may lead to unknown parts.
    fn visit_all(&mut self) -> Result<(), SchemaError> {
        let mut resolved = Vec::new();
        loop {
            if let Some((node, visit)) = self.visits.pop() {
                self.visit(node, visit)?;
            } else if let Some(reference) = self.references.pop() {
                let target = self.resolve(&reference)?;
                resolved.push((reference, target));
            } else {
                break;
            }
        }
        for (reference, target) in resolved {
            let targets = self.alternatives(&reference, target);
            self.nodes[reference.from].references.push(targets);
        }
        Ok(())
    }

    /// The node of a subschema, created and queued for a visit if it is new.
    fn enter(&mut self, visit: SubschemaVisit<'r>) -> Result<usize, SchemaError> {
        if let Some(node) = self.by_address.get(&address(visit.value)) {
            return Ok(*node);
        }
        let node = self.nodes.len();
        if MAX_SUBSCHEMAS <= node {
            return Err(SchemaError::TooManySubschemas);
        }
        self.nodes.push(SchemaNode { at: visit.at.clone(), weight: 1, ..SchemaNode::default() });
        self.by_address.insert(address(visit.value), node);
        self.visits.push((node, visit));
        Ok(node)
    }

    fn visit(&mut self, node: usize, visit: SubschemaVisit<'r>) -> Result<(), SchemaError> {
        let Value::Object(schema) = visit.value else { return Ok(()) };
        let draft = visit.draft.detect(visit.value);
        if draft == Draft::Unknown {
            let uri = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
            return Err(SchemaError::UnknownDraft {
                at: join(&visit.at, "$schema"),
                uri: quote(uri),
            });
        }
        let resolver = if visit.is_based {
            visit.resolver
        } else {
            let resource = draft.create_resource_ref(visit.value);
            visit.resolver.in_subresource(resource).map_err(|error| {
                SchemaError::bad_uri(&join(&visit.at, draft.id_keyword()), &error)
            })?
        };
        let next = self.resources.len();
        let resource = self.resources.entry(resolver.base_uri().as_str().to_owned());
        self.nodes[node].resource = *resource.or_insert(next);
        self.measure(node, schema, &visit.at)?;
        self.note_names(node, schema, &resolver);
        for (place, at, value) in keywords::subschemas(schema, &visit.at) {
            let resolver = resolver.clone();
            let child =
                self.enter(SubschemaVisit { value, at, resolver, draft, is_based: false })?;
            let node = &mut self.nodes[node];
            match place {
                ApplicationTarget::Same => node.in_place.push(child),
                ApplicationTarget::Named => node.named.push(child),
                ApplicationTarget::Indexed => node.indexed.push(child),
                ApplicationTarget::Each => node.each.push(child),
                ApplicationTarget::Contains => node.contains.push(child),
                ApplicationTarget::Unevaluated => node.unevaluated.push(child),
                ApplicationTarget::Kept => {}
            }
        }
        Ok(())
    }

    /// The cost of the node itself.
    fn measure(
        &mut self,
        node: usize,
        schema: &Map<String, Value>,
        at: &str,
    ) -> Result<(), SchemaError> {
        if schema.get("enum").and_then(Value::as_array).is_some_and(|all| MAX_ENUM < all.len()) {
            return Err(SchemaError::EnumTooLarge { at: join(at, "enum") });
        }
        if let Some(text) = schema.get("pattern").and_then(Value::as_str) {
            self.nodes[node].states = self.pattern(text, &join(at, "pattern"))?;
        }
        if let Some(members) = schema.get("patternProperties").and_then(Value::as_object) {
            let here = join(at, "patternProperties");
            for text in members.keys() {
                let states = self.pattern(text, &join(&here, text))?;
                let node = &mut self.nodes[node];
                node.name_states = node.name_states.saturating_add(states);
            }
        }
        self.nodes[node].weight = keywords::weight(schema);
        self.nodes[node].is_unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        Ok(())
    }

    fn pattern(&mut self, text: &str, at: &str) -> Result<u64, SchemaError> {
        self.patterns += 1;
        if MAX_PATTERNS < self.patterns {
            return Err(SchemaError::TooManyPatterns { at: at.to_owned() });
        }
        let refused = |why| SchemaError::Pattern { at: at.to_owned(), why };
        let states = pattern::schema_states(text).map_err(refused)?;
        self.states = self.states.saturating_add(states);
        if MAX_STATES < self.states {
            return Err(refused(PatternError::TooLarge));
        }
        Ok(states)
    }

    /// Anchors that dynamic references may reach, and the references themselves.
    fn note_names(&mut self, node: usize, schema: &Map<String, Value>, resolver: &Resolver<'r>) {
        if let Some(name) = schema.get("$dynamicAnchor").and_then(Value::as_str) {
            self.dynamic_anchors.entry(name.to_owned()).or_default().insert(node);
        }
        if schema.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            self.recursive_anchors.insert(node);
        }
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(target) = schema.get(keyword).and_then(Value::as_str) else { continue };
            self.references.push(SchemaReference {
                from: node,
                keyword,
                target: target.to_owned(),
                resolver: resolver.clone(),
            });
        }
    }

    /// The node that a reference names, by the validator's own rules of resolution.
    fn resolve(&mut self, reference: &SchemaReference<'r>) -> Result<usize, SchemaError> {
        let at = || join(&self.nodes[reference.from].at, reference.keyword);
        let remote = || SchemaError::RemoteRef { at: at(), reference: quote(&reference.target) };
        let found = match reference.resolver.lookup(&reference.target) {
            Ok(found) => found,
            Err(_) if self.is_inside(reference) => {
                let reference = quote(&reference.target);
                return Err(SchemaError::DanglingRef { at: at(), reference });
            }
            Err(_) => return Err(remote()),
        };
        let (value, resolver, draft) = found.into_inner();
        if let Some(node) = self.by_address.get(&address(value)) {
            return Ok(*node);
        }
        let Some(place) = self.places.get(&address(value)) else { return Err(remote()) };
        let at = place.clone();
        self.enter(SubschemaVisit { value, at, resolver, draft: known(draft), is_based: true })
    }

    /// Whether the reference names this document, whatever it names within it.
    fn is_inside(&self, reference: &SchemaReference<'r>) -> bool {
        let document = reference.target.split('#').next().unwrap_or_default();
        reference
            .resolver
            .lookup(document)
            .is_ok_and(|found| self.places.contains_key(&address(found.contents())))
    }

    /// A dynamic reference may lead to any anchor of its name, depending on the path to it.
    fn alternatives(&self, reference: &SchemaReference<'r>, target: usize) -> Vec<usize> {
        let mut targets = BTreeSet::from([target]);
        match reference.keyword {
            "$dynamicRef" => {
                let name = reference.target.rsplit('#').next().unwrap_or_default();
                targets.extend(self.dynamic_anchors.get(name).into_iter().flatten());
            }
            "$recursiveRef" => targets.extend(&self.recursive_anchors),
            _ => {}
        }
        targets.into_iter().collect()
    }
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}
