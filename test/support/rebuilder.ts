import type { OpenRebuilder } from '../../src/service/operators/reconcile/reconcile';
import { openRebuilder as open } from '../../worker/rebuild/rebuild';
import { workflowBundles } from './bundle';

/** The rebuilder, with the code that the global set-up has made. */
export const openRebuilder: OpenRebuilder = async (deps) =>
  open(deps, (await workflowBundles()).replay);
