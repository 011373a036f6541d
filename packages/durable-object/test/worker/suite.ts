// Runs a case of the engine's suites in an object of its own, over that object's database.
import { __wbg_reset_state, contractCases, kindCases, runCase } from "@dueline/suite/dueline_objectsuite.js";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { router } from "./router.js";

/** What the case that trapped said last. */
function said(): unknown {
  return (globalThis as { duelineSuitePanic?: unknown }).duelineSuitePanic;
}

export class Suite extends DurableObject {
  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      switch (op) {
        case "contract":
          return contractCases();
        case "kinds":
          return kindCases();
        case "run":
          return this.#run(args[0] as string);
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }

  #run(name: string): null {
    let isThere: boolean;
    try {
      isThere = runCase(name, this.ctx.storage);
    } catch (thrown) {
      // The instance is broken: the next case gets a new one.
      __wbg_reset_state();
      throw new Error(String(said() ?? thrown), { cause: thrown });
    }
    if (!isThere) {
      throw new Error(`there is no case ${name}`);
    }
    return null;
  }
}

export default router;
