import { optionsOf, type Known } from "../checks.js";
import { DuelineError, inWords } from "../errors.js";
import type { ObjectCore } from "../generated/dueline_object_kinds.js";
import type { Opened } from "../opened.js";
import type { Effects } from "../outcomes.js";
import { waitFor } from "./engine.js";

/** How a verb is called: with open timers, outside effects. */
export type Call = <T>(verb: (opened: Opened) => Promise<T>) => Promise<T>;

/** Writes to the object's own tables that commit with a change, or not at all. */
export interface WithEffects {
  /** Done in the transaction of the change, and not at all if nothing changes. Writes, and returns nothing. */
  readonly effects?: Effects;
}

const NAME_BYTES_MAX = 256;
const EFFECTS: Known<WithEffects> = { effects: true };
const encoder = new TextEncoder();

/** The verbs of one built-in kind. */
export abstract class Verbs {
  readonly #call: Call;
  readonly #kind: string;
  readonly #isThere: () => boolean;

  /** @internal */
  constructor(call: Call, kind: string, isThere: () => boolean) {
    this.#call = call;
    this.#kind = kind;
    this.#isThere = isThere;
  }

  /** Calls the core, with the number of the effects if there are some, or if it asks hooks on the way. */
  protected verb<T>(
    call: (core: ObjectCore, effects: number | undefined) => Promise<unknown>,
    effects?: Effects,
    asksHooks = false,
  ): Promise<T> {
    if (!this.#isThere()) {
      throw new DuelineError("unknown_kind", `this object has no \`${this.#kind}\`: name them in \`builtIns\``);
    }
    return this.#call((opened) =>
      opened.host.withEffects(this.#kind, effects, asksHooks, (number) =>
        waitFor<T>(opened, (core) => call(core, number)),
      ),
    );
  }
}

/** A name of the application's: 1 to 256 bytes of UTF-8, or up to another bound. */
export function shortName(what: string, value: unknown, bytesMax = NAME_BYTES_MAX, hint?: string): string {
  if (typeof value !== "string" || value === "" || !value.isWellFormed()) {
    throw new DuelineError("invalid", `${what} is a well-formed string of at least one character, not ${inWords(value)}`);
  }
  return shortText(what, value, bytesMax, hint);
}

/** A text of so many bytes of UTF-8 at most. */
export function shortText(what: string, value: unknown, bytesMax: number, hint?: string): string {
  if (typeof value !== "string" || !value.isWellFormed()) {
    throw new DuelineError("invalid", `${what} is a well-formed string, not ${inWords(value)}`);
  }
  const bytes = encoder.encode(value).length;
  if (bytes > bytesMax) {
    throw new DuelineError("invalid", `${what} has at most ${bytesMax} bytes of UTF-8, this one ${bytes}${hint === undefined ? "" : `: ${hint}`}`);
  }
  return value;
}

/** The effects that go with a verb, if there are some. */
export function effectsOf(options: WithEffects): Effects | undefined {
  return optionsOf("the options", options, EFFECTS).effects;
}
