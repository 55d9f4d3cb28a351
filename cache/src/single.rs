//! Single files outside of private folders: whether nobody else can have written them, and replacing them whole.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use crate::{
    CacheError, Distrust,
    sys::{self, Dir, Owner},
    temporary::Temporary,
};

/// Whether a file holds only what this user or root put there, so that a library may be loaded from it: the file and the
/// folder it is in belong to one of them, and nobody else may write to them. Where the file is a link, what it leads to
/// has to be in such a folder as well. On systems that are no Unix this only says whether it is there.
///
/// # Errors
/// It is not there, or somebody else could have written it. The text says what to do.
pub fn check_trusted(path: &Path) -> Result<(), CacheError> {
    let absolute = std::path::absolute(path).map_err(CacheError::io("cannot find", path))?;
    let real = path.canonicalize().map_err(CacheError::io("cannot find", path))?;
    let folders = [&absolute, &real].into_iter().filter_map(|path| path.parent()).map(Path::to_owned);
    for path in folders.chain([real.clone()]) {
        let data = fs::metadata(&path).map_err(CacheError::io("cannot examine", &path))?;
        // In a folder such as /tmp, the owner of a thing is the only one who can replace it.
        if !(data.is_dir() && sys::is_sticky(&data)) {
            let untrusted = |why| CacheError::Untrusted { path: path.clone(), why };
            sys::judge(&data, Owner::UserOrRoot, &path).map_err(untrusted)?;
        }
    }
    Ok(())
}

/// Replaces a file's contents and makes it readable by this user only. The folder is created if it is missing. Others see
/// the old contents or the new ones, also after a power cut; a link is replaced, and what it leads to stays as it is.
///
/// # Errors
/// What the system says.
pub fn replace_file(path: &Path, contents: &[u8]) -> Result<(), CacheError> {
    let absolute = std::path::absolute(path).map_err(CacheError::io("cannot find", path))?;
    let folder: PathBuf = absolute.parent().unwrap_or(&absolute).components().collect();
    let named = path.file_name().and_then(|name| name.to_str());
    let name =
        named.ok_or_else(|| CacheError::Untrusted { path: path.to_owned(), why: Distrust::NotFile })?;
    let failed = || CacheError::io("cannot write", path);
    if !folder.exists() {
        Dir::create(&folder).map_err(failed())?;
    }
    let real = folder.canonicalize().map_err(failed())?;
    let opened = Dir::open(&real).map_err(failed())?;
    let dir = opened.map_err(|why| CacheError::Untrusted { path: folder.clone(), why })?;
    let temporary = Temporary::create(&dir).map_err(failed())?;
    let mut file = temporary.file();
    file.write_all(contents).map_err(failed())?;
    temporary.keep_synced_as(name).map_err(failed())
}
