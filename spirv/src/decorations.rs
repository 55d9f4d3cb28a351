//! The decorations of a module by the ids that they are about.

use std::collections::{BTreeSet, HashMap};

use spirv::{Decoration, Op};

use crate::{module::Module, types::Types};

/// Decorations of ids, members under their own key.
pub(crate) struct Decorations<'w> {
    /// Decoration and its operands, by id.
    of: HashMap<u32, Vec<Decorated<'w>>>,
    /// Member, decoration and its operands, by type.
    of_member: HashMap<u32, Vec<MemberDecorated<'w>>>,
}

type Decorated<'w> = (u32, &'w [u32]);
type MemberDecorated<'w> = (u32, u32, &'w [u32]);

impl<'w> Decorations<'w> {
    pub fn read(module: &Module<'w>) -> Self {
        let (mut of, mut of_member) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for inst in module.insts() {
            let words = module.operands(inst);
            match inst.op {
                Op::Decorate => of.entry(words[0]).or_default().push((words[1], &words[2..])),
                Op::MemberDecorate => {
                    of_member.entry(words[0]).or_default().push((words[1], words[2], &words[3..]));
                }
                _ => {}
            }
        }
        Decorations { of, of_member }
    }

    pub fn has(&self, id: u32, decoration: Decoration) -> bool {
        self.of.get(&id).is_some_and(|list| list.iter().any(|(d, _)| *d == decoration as u32))
    }

    pub fn value(&self, id: u32, decoration: Decoration) -> Option<u32> {
        self.of.get(&id)?.iter().find(|(d, _)| *d == decoration as u32)?.1.first().copied()
    }

    /// Whether each of a struct's `count` members has the decoration.
    pub fn all_members_have(&self, ty: u32, count: usize, decoration: Decoration) -> bool {
        let Some(list) = self.of_member.get(&ty) else { return false };
        let members: BTreeSet<u32> =
            list.iter().filter(|(_, d, _)| *d == decoration as u32).map(|(m, _, _)| *m).collect();
        count > 0 && members.len() == count
    }

    /// Offset of a struct's member.
    pub fn member_offset(&self, ty: u32, member: u32) -> Option<u32> {
        let list = self.of_member.get(&ty)?;
        let found = list.iter().find(|(m, d, _)| *m == member && *d == Decoration::Offset as u32)?;
        found.2.first().copied()
    }

    /// Offset plus size of the member that ends last.
    pub fn end_of_block(&self, types: &Types, ty: u32, members: &[u32]) -> u64 {
        let offsets = self.of_member.get(&ty).map(Vec::as_slice).unwrap_or_default();
        let end =
            offsets.iter().filter(|(_, d, _)| *d == Decoration::Offset as u32).filter_map(|(m, _, v)| {
                let size = types.size(*members.get(*m as usize)?);
                Some(u64::from(*v.first()?).saturating_add(size))
            });
        end.max().unwrap_or_else(|| types.size(ty))
    }
}
