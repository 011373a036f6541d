import { goingWith } from "../wanted.js";
import {
  dead as baseDead,
  done as baseDone,
  reschedule as baseReschedule,
  type Effects,
  type Outcome,
  type Together as BaseTogether,
} from "../outcomes.js";
import type { Payloads, When } from "../types.js";
import type { BuiltIns } from "./built-ins.js";
import { coreOutgoing, outboxName, knownOutbox, type CoreOutgoing, type OutgoingOutcome } from "./outboxes.js";

/** An outcome that a handler tells, with the name of its outbox. */
export interface ToldOutcome extends OutgoingOutcome {
  readonly name: string;
}

/** What commits together with what becomes of a timer. */
export interface Together<P extends Payloads = Payloads> extends BaseTogether<P> {
  /** Outcomes to be delivered. With the timers at most 18. */
  readonly outbox?: readonly ToldOutcome[];
}

/** As `done` of the main entry; outcomes may be told with it. */
export const done: <P extends Payloads = any>(together?: Effects | Together<P>) => Outcome<P, never> = baseDone;

/** As `reschedule` of the main entry; outcomes may be told with it. */
export const reschedule: <P extends Payloads = any, T = never>(
  when: When & { readonly payload?: T },
  together?: Effects | Together<P>,
) => Outcome<P, T> = baseReschedule;

/** As `dead` of the main entry; outcomes may be told with it. */
export const dead: <P extends Payloads = any>(
  reason: string,
  together?: Effects | Together<P>,
) => Outcome<P, never> = baseDead;

/** What a handler tells with what becomes of its timer, as the core reads it. */
export function toldWith(together: Pick<Together, "outbox">, wanted: BuiltIns): { outbox?: CoreOutgoing[] } {
  const { outbox } = together;
  if (outbox === undefined) {
    return {};
  }
  const told = goingWith("outcomes told", outbox).map((outcome) => {
    const name = outboxName(outcome?.name);
    knownOutbox(name, wanted);
    return { ...coreOutgoing(outcome), name };
  });
  return { outbox: told };
}
