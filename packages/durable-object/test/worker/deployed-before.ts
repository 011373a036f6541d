// The first deployment.
import type { Handlers } from "@dueline/durable-object";
import { DeployedBase, type Kinds } from "./deployed.js";
import { router } from "./router.js";

export class Deployed extends DeployedBase {
  protected deployed(): Partial<Handlers<Kinds>> {
    return {
      known: (timer) => () => this.effect(timer),
      moved: (timer) => () => this.effect(timer),
      strict: (timer) => () => this.effect(timer),
    };
  }
}

export default router;
