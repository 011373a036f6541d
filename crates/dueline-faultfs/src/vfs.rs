//! The VFS itself: it stands in front of SQLite's own, for the files of folders that asked for it.
//!
//! It is the process's default, so the store under test is opened as ever and knows nothing of it;
//! files of other folders pass through. Every file handle is ours, with SQLite's own behind it in the
//! same allocation. The log's index is SQLite's own, shared memory and all: a crash throws it away.
#![allow(
    unsafe_code,
    reason = "a VFS is a table of C functions that SQLite calls with pointers of its own"
)]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rusqlite::ffi;

use crate::disk::{Event, FileId, SECTOR_BYTES};
use crate::fault::Call;
use crate::folder::{Treatment, Watched, treatment};

/// What we know of an open file.
struct Handle {
    treatment: Treatment,
    id: FileId,
    /// Empty unless the file is watched.
    path: PathBuf,
    /// Whether the next sync also syncs the folder, as SQLite's own VFS does for a new log.
    sync_folder: AtomicBool,
}

impl Handle {
    fn watched(&self) -> Option<&Arc<Watched>> {
        match &self.treatment {
            Treatment::Watched(watched) => Some(watched),
            Treatment::Plain | Treatment::Unsynced => None,
        }
    }
}

/// Our part of a file's allocation; SQLite's own file lies behind it.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    handle: *mut Handle,
}

const OURS_BYTES: usize = size_of::<File>();

/// SQLite's own VFS, found when ours was installed. Its address never changes.
struct Own(*mut ffi::sqlite3_vfs);

// SAFETY: the pointer is to a static of SQLite, which is never written after initialization.
unsafe impl Send for Own {}
// SAFETY: as above.
unsafe impl Sync for Own {}

static OWN: OnceLock<Own> = OnceLock::new();

/// Makes this VFS the default of the process, once.
pub(crate) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        // SAFETY: SQLite initializes itself on the first call; a null name asks for its default.
        let own = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
        if own.is_null() {
            return false;
        }
        OWN.get_or_init(|| Own(own));
        // SAFETY: `own` is a valid VFS; its struct is plain data.
        let mut ours = unsafe { *own };
        let behind = usize::try_from(ours.szOsFile).unwrap_or(0);
        ours.szOsFile = c_int::try_from(OURS_BYTES + behind).unwrap_or(c_int::MAX);
        ours.zName = c"dueline-faults".as_ptr();
        ours.pNext = ptr::null_mut();
        ours.xOpen = Some(open);
        ours.xDelete = Some(delete);
        ours.xAccess = Some(access);
        // SAFETY: the struct is leaked, so it outlives the process's use of SQLite.
        unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(ours)), 1) == ffi::SQLITE_OK }
    });
    if *installed {
        Ok(())
    } else {
        Err(io::Error::other("SQLite took no VFS"))
    }
}

fn own() -> *mut ffi::sqlite3_vfs {
    OWN.get().map_or(ptr::null_mut(), |own| own.0)
}

/// The path SQLite names, if it is one.
///
/// # Safety
/// `name` is null or a string that ends with a zero.
unsafe fn path<'a>(name: *const c_char) -> Option<&'a Path> {
    if name.is_null() {
        return None;
    }
    // SAFETY: by the caller.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    Some(Path::new(OsStr::from_bytes(bytes)))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// SQLite's own file behind ours, and what we know of it.
///
/// # Safety
/// `file` was filled by [`open`].
unsafe fn parts<'a>(file: *mut ffi::sqlite3_file) -> (*mut ffi::sqlite3_file, &'a Handle) {
    // SAFETY: `open` put our part in front and a live handle into it; both last until `close`.
    unsafe {
        let ours = file.cast::<File>();
        (file.byte_add(OURS_BYTES), &*(*ours).handle)
    }
}

/// Calls a method of SQLite's own file; a method that is not there is an I/O error.
macro_rules! own_method {
    ($inner:expr, $method:ident $(, $argument:expr)*) => {
        // SAFETY: `$inner` was opened by SQLite's own VFS, which set its methods; the arguments are
        // the ones that SQLite handed in for this very method.
        unsafe {
            match (*(*$inner).pMethods).$method {
                Some(method) => method($inner $(, $argument)*),
                None => ffi::SQLITE_IOERR,
            }
        }
    };
}

/// Ends the function with the error if this call is to fail.
macro_rules! admit {
    ($handle:expr, $call:expr) => {
        if let Some(watched) = $handle.watched()
            && let Err(code) = watched.admit($call)
        {
            return code;
        }
    };
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite hands in a path or null, and an allocation of `szOsFile` bytes.
    unsafe {
        (*file).pMethods = ptr::null();
        let path = path(name);
        let treatment = path.map_or(Treatment::Plain, treatment);
        if let Treatment::Watched(watched) = &treatment
            && let Err(code) = watched.admit(Call::Open)
        {
            return code;
        }
        let inner = file.byte_add(OURS_BYTES);
        let Some(own_open) = (*own()).xOpen else {
            return ffi::SQLITE_CANTOPEN;
        };
        let code = own_open(own(), name, inner, flags, out_flags);
        if code != ffi::SQLITE_OK {
            return code;
        }
        let (id, path) = match (&treatment, path) {
            (Treatment::Watched(watched), Some(path)) => {
                (watched.opened(&file_name(path)), path.to_owned())
            }
            _ => (0, PathBuf::new()),
        };
        let journal =
            ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL | ffi::SQLITE_OPEN_WAL;
        let new_journal = flags & ffi::SQLITE_OPEN_CREATE != 0 && flags & journal != 0;
        let handle = Handle {
            treatment,
            id,
            path,
            sync_folder: AtomicBool::new(new_journal),
        };
        let ours = file.cast::<File>();
        (*ours).handle = Box::into_raw(Box::new(handle));
        (*file).pMethods = &raw const METHODS;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    sync_folder: c_int,
) -> c_int {
    // SAFETY: SQLite hands in a path.
    let path = unsafe { path(name) };
    let treatment = path.map_or(Treatment::Plain, treatment);
    if let Treatment::Watched(watched) = &treatment
        && let Err(code) = watched.admit(Call::Delete)
    {
        return code;
    }
    let sync = if matches!(treatment, Treatment::Plain) {
        sync_folder
    } else {
        0
    };
    // SAFETY: the arguments are SQLite's own.
    let code = unsafe {
        match (*own()).xDelete {
            Some(own_delete) => own_delete(own(), name, sync),
            None => ffi::SQLITE_IOERR_DELETE,
        }
    };
    if let (Treatment::Watched(watched), Some(path), ffi::SQLITE_OK) = (&treatment, path, code) {
        watched.deleted(&file_name(path), sync_folder != 0);
    }
    code
}

unsafe extern "C" fn access(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    found: *mut c_int,
) -> c_int {
    // SAFETY: SQLite hands in a path and a place for the answer.
    unsafe {
        if let Some(Treatment::Watched(watched)) = path(name).map(treatment)
            && let Err(code) = watched.admit(Call::Exists)
        {
            return code;
        }
        match (*own()).xAccess {
            Some(own_access) => own_access(own(), name, flags, found),
            None => ffi::SQLITE_IOERR_ACCESS,
        }
    }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once, with what `open` filled; the handle ends here.
    let (inner, handle) = unsafe {
        let ours = file.cast::<File>();
        let handle = Box::from_raw(ptr::replace(&raw mut (*ours).handle, ptr::null_mut()));
        (file.byte_add(OURS_BYTES), handle)
    };
    drop(handle);
    own_method!(inner, xClose)
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    into: *mut c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, handle) = unsafe { parts(file) };
    admit!(handle, Call::Read);
    own_method!(inner, xRead, into, bytes, offset)
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, handle) = unsafe { parts(file) };
    let Some(watched) = handle.watched() else {
        return own_method!(inner, xWrite, from, bytes, offset);
    };
    let verdict = watched.admit(Call::Write);
    let sector = c_int::try_from(SECTOR_BYTES).unwrap_or(c_int::MAX);
    // A write that fails has got half of its way.
    let bytes = match verdict {
        Ok(()) => bytes,
        Err(_) => bytes / 2 / sector * sector,
    };
    if bytes > 0 {
        watched.before_change(handle.id, &handle.path);
        let code = own_method!(inner, xWrite, from, bytes, offset);
        if code != ffi::SQLITE_OK {
            return code;
        }
        let length = usize::try_from(bytes).unwrap_or(0);
        // SAFETY: SQLite hands in at least so many bytes.
        let data = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) };
        let offset = u64::try_from(offset).unwrap_or(0);
        watched.note(Event::Written(handle.id, offset, data.to_vec()));
        watched.after_change(handle.id, &handle.path, false);
    }
    verdict.err().unwrap_or(ffi::SQLITE_OK)
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: i64) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, handle) = unsafe { parts(file) };
    admit!(handle, Call::Truncate);
    let Some(watched) = handle.watched() else {
        return own_method!(inner, xTruncate, length);
    };
    watched.before_change(handle.id, &handle.path);
    let code = own_method!(inner, xTruncate, length);
    if code == ffi::SQLITE_OK {
        let length = u64::try_from(length).unwrap_or(0);
        watched.note(Event::Truncated(handle.id, length));
    }
    watched.after_change(handle.id, &handle.path, false);
    code
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, handle) = unsafe { parts(file) };
    match &handle.treatment {
        Treatment::Plain => own_method!(inner, xSync, flags),
        Treatment::Unsynced => ffi::SQLITE_OK,
        Treatment::Watched(watched) => {
            watched.before_change(handle.id, &handle.path);
            if let Err(code) = watched.admit(Call::Sync) {
                watched.note(Event::SyncFailed(handle.id));
                watched.after_change(handle.id, &handle.path, true);
                return code;
            }
            let with_folder = handle.sync_folder.swap(false, Ordering::Relaxed);
            watched.note(Event::Synced(handle.id, with_folder));
            ffi::SQLITE_OK
        }
    }
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, handle) = unsafe { parts(file) };
    admit!(handle, Call::Size);
    own_method!(inner, xFileSize, size)
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, handle) = unsafe { parts(file) };
    admit!(handle, Call::Lock);
    own_method!(inner, xLock, level)
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, _) = unsafe { parts(file) };
    own_method!(inner, xUnlock, level)
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, found: *mut c_int) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, handle) = unsafe { parts(file) };
    admit!(handle, Call::Lock);
    own_method!(inner, xCheckReservedLock, found)
}

unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, _) = unsafe { parts(file) };
    own_method!(inner, xFileControl, operation, argument)
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, _) = unsafe { parts(file) };
    own_method!(inner, xSectorSize)
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, _) = unsafe { parts(file) };
    own_method!(inner, xDeviceCharacteristics)
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    bytes: c_int,
    extend: c_int,
    mapped: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, handle) = unsafe { parts(file) };
    admit!(handle, Call::MapIndex);
    own_method!(inner, xShmMap, region, bytes, extend, mapped)
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    offset: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, handle) = unsafe { parts(file) };
    // Unlocking never fails: SQLite does not look at its answer.
    if flags & ffi::SQLITE_SHM_LOCK != 0 {
        admit!(handle, Call::LockIndex);
    }
    own_method!(inner, xShmLock, offset, count, flags)
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    // SAFETY: SQLite calls it with an open file.
    let (inner, _) = unsafe { parts(file) };
    // SAFETY: as for the other methods of SQLite's own file.
    unsafe {
        if let Some(method) = (*(*inner).pMethods).xShmBarrier {
            method(inner);
        }
    }
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    // SAFETY: SQLite calls it with an open file.
    let (inner, _) = unsafe { parts(file) };
    own_method!(inner, xShmUnmap, delete)
}
