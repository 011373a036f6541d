//! Making what a log shows durable before anybody reads it.
//!
//! A process that died in a commit leaves frames in the log that the system shows and the disk may
//! not have. After a failed sync that is so for good: the system takes the bytes for written, and no
//! later sync writes them. Whatever came to lie behind such frames would be lost with them in a power
//! cut. Written again, the same bytes in the same places, they are the next sync's to write.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

const PIECE_BYTES: usize = 1_024 * 1_024;

/// Writes the bytes of a file over themselves and syncs it; a file that is not there is fine. Nobody
/// else may be writing it.
pub(crate) fn rewrite_in_place(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    loop {
        let length = read_piece(&mut file, &mut piece)?;
        let Some(bytes) = piece.get(..length).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)?;
        offset += length as u64;
    }
    if offset > 0 {
        file.sync_all()?;
    }
    Ok(())
}

/// Fills the piece, or takes what is left of the file.
fn read_piece(file: &mut File, piece: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(room) = piece.get_mut(length..).filter(|room| !room.is_empty()) {
        match file.read(room) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_of_any_length_is_the_same_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for length in [0, 1, PIECE_BYTES, 2 * PIECE_BYTES + 17] {
            let bytes: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
            fs::write(&path, &bytes).unwrap();
            let early = std::time::UNIX_EPOCH;
            let opened = File::options().write(true).open(&path).unwrap();
            opened.set_modified(early).unwrap();
            rewrite_in_place(&path).unwrap();
            assert!(fs::read(&path).unwrap() == bytes, "{length} bytes");
            let rewritten = fs::metadata(&path).unwrap().modified().unwrap() > early;
            assert_eq!(rewritten, length > 0);
        }
    }

    #[test]
    fn a_file_that_is_not_there_stays_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        rewrite_in_place(&path).unwrap();
        assert!(!path.exists());
    }
}
