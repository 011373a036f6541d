import { Engine } from "../engine.js";
import * as module from "../generated/dueline_object_kinds.js";
import type { ObjectCore } from "../generated/dueline_object_kinds.js";
import type { Opened } from "../opened.js";

/** The build of the engine that has the built-in kinds. */
export const engine = new Engine(module);

/** Calls the core of that build and waits for what it promises. */
export function waitFor<T>(opened: Opened, call: (core: ObjectCore) => Promise<unknown>): Promise<T> {
  return opened.wait((core) => call(core as unknown as ObjectCore)) as Promise<T>;
}
