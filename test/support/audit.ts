import type { Stores } from '../../src/store';
import { type Audit, auditBy } from '../../src/store/audit';

export function operatorsAudit(stores: Pick<Stores, 'auditLog'>): Audit {
  const actor = { via: 'command_line', system_user: 'mia', host: 'ops-1' } as const;
  return auditBy({ stores, now: () => new Date() }, actor);
}
