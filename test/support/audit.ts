import { followAuditKey } from '../../src/encryption/audit-keys';
import type { Stores } from '../../src/store';
import { type Audit, auditBy, type Sign } from '../../src/store/audit';

export function operatorsAudit(stores: Pick<Stores, 'auditLog'>): Audit {
  const actor = { via: 'command_line', system_user: 'mia', host: 'ops-1' } as const;
  return auditBy({ stores, now: () => new Date() }, actor);
}

/** Signs as the process that writes a line does: the product of a test is all of them. */
export function signAsProcesses(keysDir: string): Sign {
  const api = followAuditKey(keysDir, 'api');
  const worker = followAuditKey(keysDir, 'worker');
  const command_line = followAuditKey(keysDir, 'command_line');
  return (hash, { act, actor: { via } }) => {
    if (via === 'api' || via === 'dashboard') return api(hash);
    return via === 'command_line' && !act.endsWith('.act') ? command_line(hash) : worker(hash);
  };
}
