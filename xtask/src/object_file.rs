//! Taking the debug sections out of a BPF object.

use anyhow::{Context as _, Result};
use object::{
    build::elf::{Builder, SectionData},
    elf::SHT_STRTAB,
};

/// Drops DWARF and keeps the rest.
///
/// BTF is made from the same debug information, so the build has to ask for it, but neither the
/// kernel nor aya reads DWARF, and it is most of the object. Done here rather than with
/// llvm-strip: binutils does not know BPF, and not every Rust toolchain comes with LLVM's tools.
pub(crate) fn strip(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(object).context("the linker's output is not an ELF object")?;
    for section in &mut builder.sections {
        section.delete = section.name.starts_with(b".debug_") || section.name.starts_with(b".rel.debug_");
    }
    builder.delete_orphans();

    // LLVM keeps the names of sections and symbols in one table, the writer wants two.
    let is_names = |data: &SectionData<'_>| matches!(data, SectionData::SectionString);
    if !builder.sections.iter().any(|section| is_names(&section.data)) {
        let names = builder.sections.add();
        names.name = b".shstrtab"[..].into();
        names.sh_type = SHT_STRTAB;
        names.sh_addralign = 1;
        names.data = SectionData::SectionString;
    }

    let mut stripped = Vec::new();
    builder
        .write(&mut stripped)
        .context("cannot write the stripped object")?;
    Ok(stripped)
}
