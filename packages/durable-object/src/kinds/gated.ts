import { listOf, optionsOf, type Known } from "../checks.js";
import { DuelineError } from "../errors.js";
import type { Signalled } from "../handlers.js";
import type { Hook } from "../hooks.js";
import type { Effects } from "../outcomes.js";
import { decodeName } from "../payload.js";
import { withSignal } from "../running.js";
import type { BuiltIns } from "./built-ins.js";
import { effectsOf, shortName, Verbs, type Call, type WithEffects } from "./verbs.js";

/** Something that must be visible before a record is released. */
export interface Dependency {
  /** Where it lies, 1 to 255 bytes of UTF-8: the name of an object, of a bucket. What it means is yours. */
  readonly place: string;
  /** What it is called there, 1 to 512 bytes of UTF-8. */
  readonly key: string;
}

/** A question to one place. Its `signal` is in no copy of it. */
export interface Look extends Signalled {
  readonly place: string;
  /** One to eight of them. */
  readonly keys: readonly string[];
}

/** How records are looked at and released. */
export interface GatedOptions {
  /**
   * Which of the keys are visible, in their order. What was seen is not asked again while the record stays as it
   * is. If it throws, the walk is tried again 5 s later, then up to a minute apart, for ever.
   */
  readonly look: (asked: Look) => readonly boolean[] | Promise<readonly boolean[]>;
  /** The writes that release a record; they commit with its end. It may be asked again. */
  readonly release: (record: string) => Effects | void | Promise<Effects | void>;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const PLACE_BYTES_MAX = 255;
const KEY_BYTES_MAX = 512;
const DEPENDENCIES_MAX = 8_192;
/** Most bytes of what a record waits for, as it is stored (480 KiB). */
const GATED: Known<GatedOptions> = { look: true, release: true };
const DEPENDENCY: Known<Dependency> = { place: true, key: true };
const STORED_BYTES_MAX = 480 * 1024;

/**
 * Records that are released once everything they depend on is visible, in other objects or anywhere else.
 *
 * Each is looked at until then, at least every five seconds. A walk over many dependencies keeps its place over
 * restarts. The record itself is yours; here are its name and what it waits for.
 */
export class Gated extends Verbs {
  /** @internal */
  constructor(call: Call, wanted: () => BuiltIns) {
    super(call, "gated", () => wanted().gated !== undefined);
  }

  /**
   * Has a record wait for these, at most 8,192, and looks at once. One that waits already waits for these instead,
   * from the first on.
   */
  async add(record: string, waitsFor: readonly Dependency[], options: WithEffects = {}): Promise<void> {
    const name = recordName(record);
    const stored = storedOf(waitsFor);
    await this.verb<undefined>((core, number) => core.gatedAdd(name, stored, number), effectsOf(options));
  }

  /** Lets a record go without releasing it. Whether it waited. */
  async remove(record: string, options: WithEffects = {}): Promise<boolean> {
    const name = recordName(record);
    return this.verb<boolean>((core, number) => core.gatedRemove(name, number), effectsOf(options));
  }

  /** Looks at a record now, for whoever knows that something has become visible. Whether it waits. */
  async lookNow(record: string): Promise<boolean> {
    const name = recordName(record);
    return this.verb<boolean>((core) => core.gatedLookNow(name));
  }

  /** What a record waits for, visible or not; `undefined` if it does not wait. */
  async get(record: string): Promise<readonly Dependency[] | undefined> {
    const name = recordName(record);
    const stored = await this.verb<Uint8Array | undefined>((core) => core.gatedGet(name));
    if (stored === undefined) {
      return undefined;
    }
    const pairs = JSON.parse(decoder.decode(stored)) as [place: string, key: string][];
    return pairs.map(([place, key]) => ({ place, key }));
  }
}

/** Gated records' options as the core reads them, and what it asks. */
export function coreGated(options: GatedOptions): { settings: object; hooks: Record<string, Hook> } {
  const { look, release } = optionsOf("gated", options, GATED);
  if (typeof look !== "function" || typeof release !== "function") {
    throw new DuelineError("invalid", "gated records need two functions, `look` and `release`");
  }
  return {
    settings: {},
    hooks: {
      "gated.look": async (argument, _, running) => {
        const { place, keys } = argument as { readonly place: Uint8Array; readonly keys: readonly Uint8Array[] };
        const asked = withSignal({ place: decodeName(place), keys: keys.map(decodeName) }, running);
        return visibleOf(await look(asked), keys.length);
      },
      "gated.release": async (argument, keep) => {
        const { record } = argument as { readonly record: Uint8Array };
        return keep(await release(decodeName(record)));
      },
    },
  };
}

function visibleOf(said: unknown, length: number): readonly boolean[] {
  const visible: unknown[] = Array.isArray(said) && said.length === length ? Array.from(said) : [];
  if (visible.length !== length || visible.some((of) => typeof of !== "boolean")) {
    throw new DuelineError("bad_outcome", "`look` returns a boolean for each of the keys");
  }
  return visible as boolean[];
}

function recordName(record: unknown): string {
  return shortName("the name of a record", record);
}

/** What a record waits for, as the core reads it. */
function storedOf(waitsFor: readonly Dependency[]): Uint8Array {
  const pairs = listOf("the dependencies of a record", waitsFor, 0, DEPENDENCIES_MAX).map((of) => {
    const { place, key } = optionsOf("a dependency", of, DEPENDENCY);
    return [
      shortName("the place of a dependency", place, PLACE_BYTES_MAX),
      shortName("the key of a dependency", key, KEY_BYTES_MAX),
    ];
  });
  const stored = encoder.encode(JSON.stringify(pairs));
  if (stored.length > STORED_BYTES_MAX) {
    throw new DuelineError(
      "payload_too_large",
      `what a record waits for takes at most ${STORED_BYTES_MAX} bytes as JSON, this ${stored.length}`,
    );
  }
  return stored;
}
