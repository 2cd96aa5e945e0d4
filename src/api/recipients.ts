import * as wire from '../domain/wire/recipients';
import { presentRecipient } from '../service/present';
import { createRecipient, deleteRecipient } from '../service/recipients';
import type { ApiDeps } from './context';
import type { Mount } from './mount';

/** @see docs/api.md#recipients */
export function mountRecipients(mount: Mount, deps: ApiDeps): void {
  mount.create(wire.createRecipient, (request) => createRecipient(deps, request));

  mount.endpoint(wire.deleteRecipient, async ({ key, params }) => {
    const actor = { door: 'api', key_id: key._id } as const;
    return presentRecipient(await deleteRecipient(deps, key, params.id, actor));
  });
}
