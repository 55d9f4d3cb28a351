//! Finds lists that only hold each other, and empties them.

use std::{collections::HashMap, sync::Arc};

use crate::{List, Ref};

/// A list under examination.
struct Node {
    /// Handles of it in other lists and in itself.
    inner: usize,
    /// Lists in it, by number.
    holds: Vec<usize>,
}

/// Empties those of these lists that nobody outside of them can reach. Each is given once, with the caller's own handle.
///
/// Other threads may use lists meanwhile. What they can reach is kept: a list that they hold has more handles than lists
/// account for, and one that they move from a list has been seen in it, or is seen with its new handle.
pub(crate) fn free(lists: Vec<Ref>) {
    let numbers: HashMap<_, _> =
        (0..).zip(&lists).filter_map(|(i, list)| Some((address(list)?, i))).collect();
    let mut nodes: Vec<Node> = lists.iter().map(|_| Node { inner: 0, holds: Vec::new() }).collect();
    for (index, list) in lists.iter().enumerate() {
        let Some(list) = list.downcast_ref::<List>() else { continue };
        let mut holds = Vec::new();
        list.for_each_ref(&mut |held| holds.extend(address(held).and_then(|a| numbers.get(&a)).copied()));
        holds.iter().for_each(|held: &usize| nodes[*held].inner += 1);
        nodes[index].holds = holds;
    }
    let mut kept = vec![false; lists.len()];
    // One handle is the caller's.
    let held_outside = |index: usize| {
        lists[index].object().is_some_and(|list| Arc::strong_count(list) > nodes[index].inner + 1)
    };
    let mut reached: Vec<usize> = (0..lists.len()).filter(|index| held_outside(*index)).collect();
    while let Some(index) = reached.pop() {
        if !std::mem::replace(&mut kept[index], true) {
            reached.extend(&nodes[index].holds);
        }
    }
    for (list, _) in lists.iter().zip(kept).filter(|(_, kept)| !kept) {
        if let Some(list) = list.downcast_ref::<List>() {
            list.clear();
        }
    }
}

fn address(list: &Ref) -> Option<usize> {
    list.object().map(|object| Arc::as_ptr(object).cast::<()>().addr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, memory::Memory, types::Type};

    fn list(memory: &Arc<Memory>, items: &[&Ref]) -> Ref {
        let list = Ref::new(List::allocate(Type::Any, memory).unwrap());
        memory.note_list(&list);
        items.iter().for_each(|item| push(&list, item));
        list
    }

    fn push(list: &Ref, item: &Ref) {
        list.downcast_ref::<List>().unwrap().push(Value::Ref(item.clone())).unwrap();
    }

    fn len(list: &Ref) -> usize {
        list.downcast_ref::<List>().unwrap().len()
    }

    #[test]
    fn circles_go_and_what_somebody_holds_stays() {
        let memory = Memory::new(1 << 20);
        // A list of itself, and a circle of three with a tail.
        let own = list(&memory, &[]);
        push(&own, &own);
        let tail = list(&memory, &[]);
        let a = list(&memory, &[&tail]);
        let c = list(&memory, &[&list(&memory, &[&a])]);
        push(&a, &c);
        // A circle that somebody can reach through a list outside of it.
        let x = list(&memory, &[]);
        let y = list(&memory, &[&x]);
        push(&x, &y);
        let door = list(&memory, &[&x]);
        let inside: Vec<_> = [&own, &tail, &a, &c].map(|l| Arc::downgrade(l.object().unwrap())).into();
        drop((own, tail, a, c, x, y));
        assert!(inside.iter().all(|l| l.strong_count() > 0), "circles keep themselves alive");
        memory.free_cycles();
        assert!(inside.iter().all(|l| l.strong_count() == 0));
        let Some(Value::Ref(x)) = door.downcast_ref::<List>().unwrap().value(0) else { panic!("a list") };
        assert_eq!((len(&door), len(&x)), (1, 1));
        x.downcast_ref::<List>().unwrap().clear();
    }

    #[test]
    fn dead_lists_are_not_remembered_for_ever() {
        let memory = Memory::new(1 << 20);
        for _ in 0..100_000 {
            drop(list(&memory, &[]));
        }
        assert!(memory.noted() < 1000, "{}", memory.noted());
    }
}
