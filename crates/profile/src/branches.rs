//! Divides the memory of a call tree by functions, so that a few of them say most about it.
//!
//! Each block belongs to the innermost function of its stack that is one of the chosen ones. The functions are chosen one by one,
//! each the one that tells most: a function of half of the memory tells more than one of nearly all, or of little.

use hashbrown::HashMap;

use crate::groups::{GroupBy, Groups, Label, NONE, View};
use crate::options::Look;
use crate::query::Pattern;
use crate::store::{ContextId, IdVec, NodeId, Profile, is_anonymous};

/// Branches with less than this share of the memory are not looked at one by one.
const SMALL: f64 = 0.001;

/// A function is not worth a layer if it tells less than this, in nats.
const LEAST_GAIN: f64 = 0.01;

/// What it tells that memory is of a named function at all, in nats.
const NAMED: f64 = 0.3;

/// How much less a function tells that takes little of all memory of what it calls: the rest of what `main` calls is hardly
/// described by its name.
const IMPURE: f64 = 0.8;

/// How much less a name tells that many functions of a program can have, such as `Module.(fun)`.
const ANONYMOUS: f64 = 0.5;

/// The functions that divide memory, most telling first.
#[derive(Debug)]
pub(crate) struct Division {
    functions: Vec<Divider>,
}

/// All functions of a name: a query cannot tell them apart.
#[derive(Debug)]
struct Divider {
    name: String,
    /// The others that it calls, directly or not: their blocks are not its own.
    inner: Vec<usize>,
}

impl Division {
    /// At most so many functions, and not more than 64, for stacks of so much memory each.
    pub(crate) fn new(
        profile: &Profile,
        view: &View,
        weights: &IdVec<ContextId, f64>,
        most: usize,
    ) -> Self {
        let groups = Groups::shared(profile, view);
        let branches = Branches::new(profile, &groups, weights);
        let chosen = branches.divide(most.min(u64::BITS as usize), |group| {
            let name = &groups.labels[group as usize].name;
            // An address stands for a function of which the name is not known.
            let is_nameless = is_anonymous(name) || name.starts_with("0x");
            if is_nameless { ANONYMOUS } else { 1.0 }
        });
        let mut names: Vec<&str> = Vec::new();
        for group in chosen {
            let name = &*groups.labels[group as usize].name;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let inner = inner(profile, &groups, &names);
        let functions = names.iter().zip(inner).map(|(&name, inner)| Divider {
            name: name.to_owned(),
            inner: places(inner).collect(),
        });
        Self {
            functions: functions.collect(),
        }
    }

    /// Returns true if no function stands out.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The display of functions that attributes each block to its branch.
    pub(crate) fn look(&self, look: &Look) -> Look {
        self.look_with(look, 0..self.functions.len())
    }

    fn look_with(&self, look: &Look, functions: impl IntoIterator<Item = usize>) -> Look {
        let names = functions
            .into_iter()
            .map(|place| &self.functions[place].name);
        Look {
            own_code: true,
            all_code: false,
            mine: names.map(|name| Pattern::literal(name)).collect(),
            ..look.clone()
        }
    }

    /// The query that selects the blocks of a branch.
    pub(crate) fn query(&self, label: &Label, look: &Look) -> Option<String> {
        let mut functions = self.functions.iter();
        let place = functions.position(|function| function.name == label.name)?;
        let meant = std::iter::once(place).chain(self.functions[place].inner.iter().copied());
        GroupBy::Function.condition(label, &self.look_with(look, meant))
    }
}

/// For each name, the places of the others that are below it in some stack, as bits.
fn inner(profile: &Profile, groups: &Groups, names: &[&str]) -> Vec<u64> {
    let labels = groups.labels.iter();
    let place_of: Vec<Option<usize>> = labels
        .map(|label| names.iter().position(|name| *name == label.name))
        .collect();
    let mut inner = vec![0_u64; names.len()];
    let mut meet = |outer: u64, group: u32| {
        // Functions that are left out have no group.
        let Some(place) = place_of.get(group as usize).copied().flatten() else {
            return outer;
        };
        for caller in places(outer & !(1 << place)) {
            inner[caller] |= 1 << place;
        }
        outer | 1 << place
    };
    let tree = profile.tree();
    let mut of_node = IdVec::like(&tree.parent, 0_u64);
    for node in tree.nodes() {
        let outer = of_node[tree.parent[node]];
        of_node[node] = meet(outer, groups.of_frame[tree.frame[node]]);
    }
    for (context, stack) in profile.contexts().enumerate() {
        if let Some(site) = profile.site_frame(context) {
            meet(of_node[stack.node], groups.of_frame[site]);
        }
    }
    inner
}

/// The places of the bits that are set.
fn places(bits: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |place| bits >> place & 1 == 1)
}

/// The large branches of a call tree. Each is behind the one that calls it.
struct Branches {
    branches: Vec<Branch>,
    total: f64,
}

struct Branch {
    caller: usize,
    /// The function, or [`NONE`].
    group: u32,
    /// The memory of its stacks that is not of a branch that it calls, in shares of the total.
    own: f64,
}

/// The branch that has no caller.
const ROOT: usize = 0;

impl Branches {
    fn new(profile: &Profile, groups: &Groups, weights: &IdVec<ContextId, f64>) -> Self {
        let tree = profile.tree();
        let contexts = profile.contexts();
        let total: f64 = weights.iter().sum();
        let mut of_node = IdVec::like(&tree.parent, 0.0);
        // What is left of a stack that was cut are callers; of whom is not known.
        let has_site = |context| profile.site_frame(context).is_some();
        for (context, weight) in contexts.ids().zip(weights) {
            if has_site(context) {
                of_node[contexts[context].node] += weight;
            }
        }
        for node in tree.nodes().rev() {
            let weight = of_node[node];
            of_node[tree.parent[node]] += weight;
        }
        let mut branches = vec![Branch::new(ROOT, NONE)];
        let mut place_of_node = IdVec::like(&tree.parent, ROOT);
        for node in tree.nodes() {
            let caller = place_of_node[tree.parent[node]];
            place_of_node[node] = if of_node[node] < SMALL * total {
                caller
            } else {
                branches.push(Branch::new(caller, groups.of_frame[tree.frame[node]]));
                branches.len() - 1
            };
        }
        // What allocates is no node of the tree.
        let mut places: HashMap<(NodeId, u32), usize> = HashMap::new();
        for (context, &weight) in contexts.ids().zip(weights) {
            let share = if total > 0.0 { weight / total } else { 0.0 };
            let Some(site) = profile.site_frame(context) else {
                branches[ROOT].own += share;
                continue;
            };
            let (node, group) = (contexts[context].node, groups.of_frame[site]);
            let caller = place_of_node[node];
            let place = if share < SMALL || group == NONE {
                caller
            } else {
                *places.entry((node, group)).or_insert_with(|| {
                    branches.push(Branch::new(caller, group));
                    branches.len() - 1
                })
            };
            branches[place].own += share;
        }
        Self { branches, total }
    }

    /// The groups that divide the memory best, in the order in which they were chosen.
    fn divide(&self, most: usize, name_value: impl Fn(u32) -> f64) -> Vec<u32> {
        let mut chosen = Vec::new();
        let all = self.layers(&chosen).taken;
        let inclusive = |group: u32| all.get(&group).map_or(0.0, |taken| taken.values().sum());
        // Of functions that tell the same, the outermost is taken.
        let mut first: HashMap<u32, usize> = HashMap::new();
        for (place, branch) in self.branches.iter().enumerate() {
            first.entry(branch.group).or_insert(place);
        }
        while self.total > 0.0 && chosen.len() < most {
            let layers = self.layers(&chosen);
            let value = |group: u32, share: f64| match group {
                NONE => entropy(share),
                group => name_value(group) * NAMED * share + entropy(share),
            };
            let gain = |(&group, taken): (&u32, &HashMap<u32, f64>)| {
                let share: f64 = taken.values().sum();
                let purity = (share / inclusive(group)).min(1.0);
                let worth = name_value(group) * (IMPURE + (1.0 - IMPURE) * purity);
                let gained = value(group, share);
                let lost = taken.iter().map(|(layer, taken)| {
                    let size = layers.sizes[layer];
                    value(*layer, size) - value(*layer, (size - taken).max(0.0))
                });
                worth * (gained - lost.sum::<f64>())
            };
            let gains = layers.taken.iter().map(|taken| (*taken.0, gain(taken)));
            let best = gains.max_by(|(a, left), (b, right)| {
                left.total_cmp(right).then_with(|| first[b].cmp(&first[a]))
            });
            match best {
                Some((group, gain)) if gain > LEAST_GAIN => chosen.push(group),
                _ => break,
            }
        }
        chosen
    }

    /// The layers of the chosen groups, and what each other group would take of them.
    fn layers(&self, chosen: &[u32]) -> Layers {
        let is_chosen = |branch: &Branch| chosen.contains(&branch.group);
        // What is below a branch, but not of a layer that begins there.
        let mut below: Vec<f64> = self.branches.iter().map(|branch| branch.own).collect();
        for (place, branch) in self.branches.iter().enumerate().skip(1).rev() {
            if !is_chosen(branch) {
                below[branch.caller] += below[place];
            }
        }
        let mut layers = Layers::default();
        for (place, branch) in self.branches.iter().enumerate() {
            if place == ROOT || is_chosen(branch) {
                *layers.sizes.entry(branch.group).or_default() += below[place];
                continue;
            }
            let mut caller = branch.caller;
            while caller != ROOT
                && !is_chosen(&self.branches[caller])
                && self.branches[caller].group != branch.group
            {
                caller = self.branches[caller].caller;
            }
            let outer = self.branches[caller].group;
            // A function that calls itself takes it once.
            if branch.group != NONE && outer != branch.group {
                let taken = layers.taken.entry(branch.group).or_default();
                *taken.entry(outer).or_default() += below[place];
            }
        }
        layers
    }
}

impl Branch {
    fn new(caller: usize, group: u32) -> Self {
        Self {
            caller,
            group,
            own: 0.0,
        }
    }
}

/// Layers by their function; [`NONE`] is the rest.
#[derive(Default)]
struct Layers {
    /// Shares of the memory.
    sizes: HashMap<u32, f64>,
    /// For each other function, the shares of each layer that it would take.
    taken: HashMap<u32, HashMap<u32, f64>>,
}

fn entropy(share: f64) -> f64 {
    if share > 0.0 {
        -share * share.ln()
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Branches in the order of callers first.
    fn branches(of: &[(usize, u32, f64)]) -> Branches {
        let mut branches = vec![Branch::new(ROOT, NONE)];
        branches.extend(of.iter().map(|&(caller, group, own)| Branch {
            own,
            ..Branch::new(caller, group)
        }));
        Branches {
            branches,
            total: 1.0,
        }
    }

    fn chosen(branches: &Branches, most: usize) -> Vec<u32> {
        let mut chosen = branches.divide(most, |_| 1.0);
        chosen.sort_unstable();
        chosen
    }

    #[test]
    fn functions_of_everything_tell_less_than_those_of_parts() {
        const MAIN: u32 = 0;
        const RUN: u32 = 1;
        const PARSE: u32 = 2;
        const CHECK: u32 = 3;
        const INFER: u32 = 4;
        let tree = branches(&[
            (0, MAIN, 0.01),
            (1, RUN, 0.0),
            (2, PARSE, 0.29),
            (2, CHECK, 0.3),
            (4, INFER, 0.4),
        ]);
        assert_eq!(chosen(&tree, 3), [PARSE, CHECK, INFER]);
        // What is of nothing else is of the function that all have.
        let all = chosen(&tree, 4);
        assert!(all.contains(&PARSE) && all.contains(&INFER), "{all:?}");
        assert_eq!(chosen(&branches(&[(0, MAIN, 1.0)]), 3), [MAIN]);
    }

    #[test]
    fn a_function_that_calls_itself_through_another_counts_once() {
        const MAIN: u32 = 0;
        const MODULE: u32 = 1;
        const VALUE: u32 = 2;
        let tree = branches(&[
            (0, MAIN, 0.2),
            (1, MODULE, 0.2),
            (2, VALUE, 0.2),
            (3, MODULE, 0.2),
            (4, VALUE, 0.2),
        ]);
        let taken = &tree.layers(&[]).taken;
        assert!((taken[&MODULE][&NONE] - 0.8).abs() < 1e-9);
        assert!((taken[&VALUE][&NONE] - 0.6).abs() < 1e-9);
        // The innermost of the chosen functions has the block.
        let layers = tree.layers(&[VALUE]);
        assert!((layers.sizes[&VALUE] - 0.6).abs() < 1e-9);
        assert!((layers.taken[&MODULE][&NONE] - 0.2).abs() < 1e-9);
        assert!((layers.taken[&MODULE][&VALUE] - 0.2).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!(chosen(&branches(&[]), 3), [] as [u32; 0]);
        assert_eq!(chosen(&branches(&[(0, NONE, 1.0)]), 3), [] as [u32; 0]);
    }
}
