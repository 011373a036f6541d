//! The signing secrets, in one file of the data directory.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::time_text::{parse_rfc3339_ms, rfc3339_ms};

const PREFIX: &str = "whsec_";
const SECRET_BYTES: usize = 32;
const SECRET_BYTES_MIN: usize = 24;
const SECRET_BYTES_MAX: usize = 64;

/// Why the signing secrets could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The file could not be read or written.
    #[error("the signing secrets in {path} could not be read or written")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is there and does not hold secrets. It is never overwritten: receivers may depend
    /// on what it held.
    #[error("the signing secrets in {path} are damaged: {detail}; restore the file from a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it; never the secret.
        detail: String,
    },
    /// The system gave no random bytes.
    #[error("the system gave no random bytes for a new secret")]
    Entropy,
}

/// The signing secrets of a server: the first signs for good, those before it until their end, so
/// that receivers have time to take the new one over.
pub struct SecretStore {
    path: PathBuf,
    secrets: RwLock<Vec<Secret>>,
}

#[derive(Clone)]
struct Secret {
    key: Vec<u8>,
    signs_until_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredFile {
    secrets: Vec<StoredSecret>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSecret {
    secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signs_until: Option<String>,
}

impl SecretStore {
    /// Reads the secrets of this file, or creates it with a new secret, readable by its owner only.
    ///
    /// # Errors
    /// The file cannot be read or written, or is damaged.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SecretError> {
        let path = path.into();
        let secrets = match fs::read(&path) {
            Ok(bytes) => decode(&bytes).map_err(|detail| SecretError::Damaged {
                path: path.clone(),
                detail,
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let secrets = vec![Secret::draw()?];
                write(&path, &secrets)?;
                secrets
            }
            Err(source) => return Err(SecretError::Io { path, source }),
        };
        Ok(Self {
            path,
            secrets: RwLock::new(secrets),
        })
    }

    /// The current secret in the form that receivers take: `whsec_` and base64.
    pub fn current(&self) -> String {
        let secrets = self.secrets.read().unwrap_or_else(PoisonError::into_inner);
        secrets.first().map(Secret::text).unwrap_or_default()
    }

    /// Draws a new secret. Those that sign now go on beside it for `overlap_ms`, unless they end
    /// sooner; those that have ended are forgotten. Blocks on the disk.
    ///
    /// # Errors
    /// The file cannot be written; the secrets then stay as they are.
    pub fn rotate(&self, now_ms: u64, overlap_ms: u64) -> Result<(), SecretError> {
        let mut secrets = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        let until_ms = now_ms.saturating_add(overlap_ms);
        let mut rotated = vec![Secret::draw()?];
        rotated.extend(
            secrets
                .iter()
                .filter(|secret| secret.signs_at(now_ms))
                .map(|secret| {
                    let ends_ms = secret.signs_until_ms.unwrap_or(until_ms).min(until_ms);
                    Secret {
                        key: secret.key.clone(),
                        signs_until_ms: Some(ends_ms),
                    }
                }),
        );
        write(&self.path, &rotated)?;
        *secrets = rotated;
        Ok(())
    }

    /// The keys that sign at this time, the current one first.
    pub(super) fn signing_keys(&self, now_ms: u64) -> Vec<Vec<u8>> {
        let secrets = self.secrets.read().unwrap_or_else(PoisonError::into_inner);
        let signing = secrets.iter().filter(|secret| secret.signs_at(now_ms));
        signing.map(|secret| secret.key.clone()).collect()
    }
}

impl fmt::Debug for SecretStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Secret {
    fn draw() -> Result<Self, SecretError> {
        let mut key = vec![0; SECRET_BYTES];
        getrandom::fill(&mut key).map_err(|_| SecretError::Entropy)?;
        Ok(Self {
            key,
            signs_until_ms: None,
        })
    }

    fn signs_at(&self, now_ms: u64) -> bool {
        self.signs_until_ms.is_none_or(|until_ms| now_ms < until_ms)
    }

    fn text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.key))
    }
}

fn decode(bytes: &[u8]) -> Result<Vec<Secret>, String> {
    let stored: StoredFile = serde_json::from_slice(bytes)
        .map_err(|error| format!("line {}, column {}", error.line(), error.column()))?;
    let mut secrets = Vec::with_capacity(stored.secrets.len());
    for (index, stored) in stored.secrets.into_iter().enumerate() {
        let place = format!("secret {}", index.saturating_add(1));
        let key = stored
            .secret
            .strip_prefix(PREFIX)
            .and_then(|encoded| STANDARD.decode(encoded).ok())
            .filter(|key| (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&key.len()))
            .ok_or_else(|| format!("{place} is not whsec_ and the base64 of 24 to 64 bytes"))?;
        let signs_until_ms = stored
            .signs_until
            .map(|text| parse_rfc3339_ms(&text))
            .transpose()
            .map_err(|error| format!("{place}, signs_until: {error}"))?;
        secrets.push(Secret {
            key,
            signs_until_ms,
        });
    }
    match secrets.first() {
        Some(Secret {
            signs_until_ms: None,
            ..
        }) => Ok(secrets),
        _ => Err("the first secret must be there and have no signs_until".to_owned()),
    }
}

/// Replaces the file as a whole: a crash leaves the old one or the new one.
fn write(path: &Path, secrets: &[Secret]) -> Result<(), SecretError> {
    let stored = StoredFile {
        secrets: secrets
            .iter()
            .map(|secret| StoredSecret {
                secret: secret.text(),
                signs_until: secret.signs_until_ms.map(rfc3339_ms),
            })
            .collect(),
    };
    let attempt = || -> io::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(&stored)?;
        bytes.push(b'\n');
        let draft = path.with_extension("new");
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = create_private(&draft)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&draft, path)?;
        sync_folder(path)
    };
    attempt().map_err(|source| SecretError::Io {
        path: path.to_path_buf(),
        source,
    })
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Makes a rename durable; only Unix lets a folder be synced.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix)
        && let Some(folder) = path.parent()
    {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_holds_one_secret_that_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("webhook-secrets.json");
        let first = SecretStore::open(&path).unwrap();
        let again = SecretStore::open(&path).unwrap();
        assert_eq!(first.current(), again.current());
        assert_eq!(first.signing_keys(0), again.signing_keys(0));
        assert_eq!(first.signing_keys(0)[0].len(), SECRET_BYTES);
        assert!(!format!("{first:?}").contains(&first.current()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_rotation_signs_with_both_until_the_overlap_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("webhook-secrets.json");
        let store = SecretStore::open(&path).unwrap();
        let old = store.signing_keys(1_000);
        store.rotate(1_000, 500).unwrap();
        let both = store.signing_keys(1_499);
        assert_eq!(both.len(), 2);
        assert_eq!(both[1], old[0]);
        assert_eq!(store.signing_keys(1_500), vec![both[0].clone()]);
        assert_eq!(SecretStore::open(&path).unwrap().signing_keys(1_499), both);
        store.rotate(1_600, 500).unwrap();
        assert_eq!(
            store.signing_keys(1_600).len(),
            2,
            "the ended one is forgotten"
        );
    }

    #[test]
    fn a_damaged_file_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("webhook-secrets.json");
        for text in [
            "",
            "{}",
            r#"{"secrets": []}"#,
            r#"{"secrets": [{"secret": "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}]}"#,
            r#"{"secrets": [{"secret": "whsec_c2hvcnQ="}]}"#,
            r#"{"secrets": [{"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "signs_until": "2027-01-01T00:00:00Z"}]}"#,
        ] {
            fs::write(&path, text).unwrap();
            let refused = SecretStore::open(&path);
            assert!(
                matches!(refused, Err(SecretError::Damaged { .. })),
                "{text}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
