//! Just enough HTTP to talk to the server under test without its own client.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A message as it came over the wire.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// `HTTP/1.1 200 OK` or `POST /hook HTTP/1.1`.
    pub(crate) first_line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// Reads one message; `None` at the end of the stream.
    pub(crate) fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut first_line = String::new();
        if reader.read_line(&mut first_line)? == 0 {
            return Ok(None);
        }
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut message = Self {
            first_line: first_line.trim_end().to_owned(),
            headers,
            body: Vec::new(),
        };
        let length = message
            .header("content-length")
            .and_then(|text| text.parse().ok());
        message.body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut message.body)?;
        Ok(Some(message))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn status(&self) -> u16 {
        let status = self
            .first_line
            .split(' ')
            .nth(1)
            .and_then(|word| word.parse().ok());
        status.expect("an answer has a status")
    }
}

/// Sends one request and reads its answer.
pub(crate) fn send(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Message> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    request.push_str(body);
    stream.write_all(request.as_bytes())?;
    Message::read(&mut BufReader::new(stream))?
        .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}
