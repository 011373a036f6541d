import { DuelineError, textOf } from "./errors.js";
import { jsonOf } from "./json.js";

/** Most bytes of a stored payload (480 KiB). */
const PAYLOAD_BYTES_MAX = 480 * 1024;
/** In front of bytes; no JSON text begins like this. */
const BYTES_MARK = 0;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A payload as it is stored: nothing for `undefined`, the JSON text, or the mark and the bytes. */
export function encodePayload(payload: unknown, what = "a payload", bytesMax = PAYLOAD_BYTES_MAX): Uint8Array {
  const bytes = bytesOf(payload);
  if (bytes.length > bytesMax) {
    throw new DuelineError(
      "payload_too_large",
      `${what} takes at most ${bytesMax} bytes as it is stored, this one ${bytes.length}`,
    );
  }
  return bytes;
}

function bytesOf(payload: unknown): Uint8Array {
  if (payload === undefined) {
    return new Uint8Array();
  }
  if (payload instanceof ArrayBuffer || ArrayBuffer.isView(payload)) {
    const view = viewOf(payload);
    const marked = new Uint8Array(view.length + 1);
    marked[0] = BYTES_MARK;
    marked.set(view, 1);
    return marked;
  }
  return encoder.encode(jsonOf(payload));
}

function viewOf(bytes: ArrayBuffer | ArrayBufferView): Uint8Array {
  try {
    return ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
  } catch (cause) {
    throw new DuelineError("payload_not_serializable", `the payload's bytes are not there: ${textOf(cause)}`, { cause });
  }
}

/** A stored payload. Bytes come back as a `Uint8Array`. Throws if it does not decode. */
export function decodePayload(stored: Uint8Array): unknown {
  if (stored.length === 0) {
    return undefined;
  }
  if (stored[0] === BYTES_MARK) {
    return stored.slice(1);
  }
  return JSON.parse(decoder.decode(stored));
}

/** A stored payload for whoever looks at it; `undefined` if it does not decode. */
export function shownPayload(stored: Uint8Array): unknown {
  try {
    return decodePayload(stored);
  } catch {
    return undefined;
  }
}

const names = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** A stored name. One that is no UTF-8 was not scheduled by this package and is shown with marks. */
export function decodeName(stored: Uint8Array): string {
  return names.decode(stored);
}
