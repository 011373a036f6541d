import { optionalText, optionalWhole, optionsOf, text, type Known } from "./checks.js";
import type { Opened } from "./opened.js";
import type { DeadLetter, KindOf, Page, Payloads, Scheduled } from "./types.js";
import { deadLetter, type CoreDead } from "./views.js";

/** How a verb is called. */
type Call = <T>(verb: (opened: Opened) => Promise<T>) => Promise<T>;

/** Which dead letters to list. */
export interface DeadLetterPlace<K extends string = string> {
  readonly kind?: K;
  /** `next` of the page before. */
  readonly after?: string;
  /** 1 to 1,000; 100 without it. */
  readonly limit?: number;
}

const LIST: Known<DeadLetterPlace> = { kind: true, after: true, limit: true };

/** Timers that were given up: to be looked at, scheduled again, or thrown away. */
export class DeadLetters<P extends Payloads, B extends string = never> {
  readonly #call: Call;

  /** @internal */
  constructor(call: Call) {
    this.#call = call;
  }

  /** One page of the dead timers of a kind, or of all, in the order of their deaths. */
  async list(
    options: DeadLetterPlace<KindOf<P> | B> = {},
  ): Promise<Page<DeadLetter>> {
    return this.#call(async (opened) => {
      const { kind: name, ...place } = optionsOf("the options", options, LIST);
      const kind = name === undefined ? undefined : opened.host.number(name);
      const limit = optionalWhole("limit", place.limit, 1, 1000) ?? 100;
      const after = optionalText("`after`", place.after);
      const page = (await opened.wait((core) => core.dead(kind, after, limit))) as {
        readonly dead: readonly CoreDead[];
        readonly next?: string;
      };
      return {
        items: page.dead.map((dead) => deadLetter(opened.host, dead)),
        ...(page.next === undefined ? {} : { next: page.next }),
      };
    });
  }

  /** Schedules a dead timer again, due at once, its attempts at 0; `undefined` if it is gone. */
  async requeue(id: string): Promise<Scheduled | undefined> {
    return this.#call(async (opened) => {
      const letter = text("the id of a dead letter", id);
      return (await opened.wait((core) => core.requeue(letter))) as Scheduled | undefined;
    });
  }

  /** Schedules all dead timers of a kind, or of all kinds, again, and says how many. */
  async requeueAll(kind?: KindOf<P> | B): Promise<number> {
    return this.#call(async (opened) => {
      const number = kind === undefined ? undefined : opened.host.number(kind);
      let requeued = 0;
      let after: string | undefined;
      do {
        const from = after;
        const page = (await opened.wait((core) => core.requeuePage(number, from, 64))) as {
          readonly requeued: number;
          readonly next?: string;
        };
        requeued += page.requeued;
        after = page.next;
      } while (after !== undefined);
      return requeued;
    });
  }

  /** Throws a dead timer away. Whether it was there. */
  async purge(id: string): Promise<boolean> {
    return this.#call(async (opened) => {
      const letter = text("the id of a dead letter", id);
      return (await opened.wait((core) => core.purge(letter))) as boolean;
    });
  }
}
