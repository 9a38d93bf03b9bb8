//! `psi-user`'s slots: who is whose parent.

pub(crate) struct Slots(pub(crate) Vec<Option<u32>>);

impl Slots {
    pub(crate) fn parent(&self, slot: u32) -> Option<u32> {
        self.0[slot as usize]
    }
}
