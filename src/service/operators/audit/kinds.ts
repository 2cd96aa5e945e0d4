import type { Document } from 'mongodb';
import type { AuditedAct, AuditFacts } from '../../../domain/account/audit-log';
import { toEnv } from '../../../domain/environment';
import type { ChainedLine } from '../../../store/audit-log';
import { fingerprint } from '../../../store/keys';
import { presentSettings } from '../../merchants/accounts';

/** Removes the row where it has no facts. */
interface Effect {
  /** Unique in the account. */
  name: unknown;
  creates?: AuditFacts;
  changes?: AuditFacts;
}

export interface AuditedKind {
  collection: string;
  /** Lines concern the service, whatever account a row is about. */
  ofService?: true;
  name: (row: Document) => unknown;
  /** Named as in the lines. */
  facts: (row: Document) => AuditFacts;
  acts: Partial<Record<AuditedAct, (line: ChainedLine) => Effect>>;
}

const getId = ({ _id }: Document): unknown => _id;
const creates = ({ target, livemode, after }: ChainedLine): Effect => ({
  name: target,
  creates: { livemode, ...after },
});
const changes = ({ target, after }: ChainedLine): Effect => ({
  name: target,
  changes: { ...after },
});
const removes = ({ target }: ChainedLine): Effect => ({ name: target });
const changesTo =
  (facts: AuditFacts) =>
  ({ target }: ChainedLine): Effect => ({ name: target, changes: facts });

/** Rows that give access or direct money, and the acts that explain them. */
export const AUDITED_KINDS: Record<string, AuditedKind> = {
  account: {
    collection: 'accounts',
    name: getId,
    facts: ({ name, frozen, ...settings }) => ({
      ...presentSettings(Object(settings)),
      ...{ name, frozen: frozen !== undefined },
    }),
    acts: {
      'account.created': creates,
      'account.updated': changes,
      'account.frozen': changesTo({ frozen: true }),
      'account.unfrozen': changesTo({ frozen: false }),
    },
  },
  api_key: {
    collection: 'api_keys',
    name: getId,
    facts: ({ livemode, hash, scopes, expires_at, allowed_cidrs, revoked_at }) => ({
      ...{ livemode, fingerprint: fingerprint(String(hash)), scopes },
      ...{ expires_at, allowed_cidrs, revoked_at },
    }),
    acts: { 'api_key.created': creates, 'api_key.revoked': changes },
  },
  operator: {
    collection: 'operators',
    name: getId,
    facts: ({ hash, name, role, revoked_at }) => ({
      ...{ fingerprint: fingerprint(String(hash)), name, role, revoked_at },
    }),
    acts: { 'operator.created': creates, 'operator.revoked': changes },
  },
  connector_key: {
    collection: 'connector_keys',
    name: getId,
    facts: ({ connector, revoked_at }) => ({ connector, revoked_at }),
    acts: { 'connector_key.created': creates, 'connector_key.revoked': changes },
  },
  connector_pause: {
    collection: 'connector_pauses',
    ofService: true,
    name: getId,
    facts: ({ livemode, connector }) => ({ livemode, connector }),
    acts: { 'connector.paused': creates, 'connector.resumed': removes },
  },
  connector_release: {
    collection: 'connector_releases',
    ofService: true,
    name: getId,
    facts: ({ livemode, connector }) => ({ livemode, connector }),
    acts: { 'connector.released': creates },
  },
  routing_rule: {
    collection: 'routing_rules',
    ofService: true,
    name: getId,
    facts: ({ livemode, method, currency, account_id: account, connector }) => ({
      ...{ livemode, method, currency, account, connector },
    }),
    acts: { 'routing.set': creates, 'routing.removed': removes },
  },
  user: {
    collection: 'users',
    name: getId,
    facts: ({ email, role, totp, passkeys = [] }) => ({
      ...{ email, role, second_factor: totp !== null },
      ...Object.fromEntries(Object.values(passkeys).map((passkey) => [Object(passkey).id, true])),
    }),
    acts: {
      'account.created': ({ after }) => ({
        name: after?.['owner'],
        creates: { email: after?.['email'], role: 'owner' },
      }),
      'user.joined': creates,
      'user.role_changed': changes,
      'user.removed': removes,
      'user.second_factor_on': changesTo({ second_factor: true }),
      'user.second_factor_off': changesTo({ second_factor: false }),
      'passkey.added': ({ target, after }) => ({
        name: target,
        changes: { [String(after?.['passkey'])]: true },
      }),
      'passkey.removed': ({ target, before }) => ({
        name: target,
        changes: { [String(before?.['passkey'])]: false },
      }),
    },
  },
  invitation: {
    collection: 'dashboard_invitations',
    name: ({ email }) => email,
    facts: ({ role }) => ({ role }),
    acts: {
      'user.invited': creates,
      'user.invitation_withdrawn': removes,
      'user.joined': ({ after }) => ({ name: after?.['email'] }),
    },
  },
  webhook_endpoint: {
    collection: 'webhook_endpoints',
    name: ({ endpoint_id }) => endpoint_id,
    facts: ({ url, enabled_events, disabled_reason }) => ({
      ...{ url, events: enabled_events ?? 'all', disabled_reason },
    }),
    acts: {
      'webhook.set': creates,
      'webhook.created': creates,
      'webhook.updated': changes,
      'webhook.disabled': changes,
      'webhook.deleted': removes,
    },
  },
  wallet: {
    collection: 'wallets',
    name: ({ livemode, network }) => `${toEnv(livemode)} ${network}`,
    facts: ({ address, counts_from }) => ({ address, counts_from }),
    acts: {
      'wallet.set': (line) => ({
        ...creates(line),
        name: `${toEnv(line.livemode === true)} ${line.target}`,
      }),
    },
  },
};
