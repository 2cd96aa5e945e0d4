import { omitUndefined } from '../defined';
import type { AuditedAct } from './audit-log';

/** Act of which another operator has to approve on live. */
interface ApprovedAct {
  /** Line of the audit log whose transaction ends the approval. */
  act: AuditedAct;
  /** Says what is asked. */
  asks: string;
  /** Which calls need it, as part of a sentence; absent: each on live. */
  when?: string;
  /** The requester repeats the command, which prints a secret; absent: the approval does the act. */
  isRepeated?: true;
}

type Need = 'nothing' | 'key' | ApprovedAct;

/**
 * Says what each command needs on live: nothing, an operator's key and a reason, or another
 * operator's approval, too. The sandbox needs nothing.
 * @see docs/operators.md#operators-and-their-keys
 */
export const AUTHORITY = {
  'account create': 'nothing',
  'account update': {
    act: 'account.updated',
    asks: 'raise or switch off limits of an account, or hold unverified payouts no more',
    when: 'that raises or switches off a limit, or says `--hold-unverified off`',
  },
  'account freeze': 'nothing',
  'account unfreeze': { act: 'account.unfrozen', asks: 'unfreeze an account' },
  'account show': 'nothing',
  'account list': 'nothing',
  'key create': {
    act: 'api_key.created',
    asks: 'create a live API key',
    when: 'with `--env live`',
    isRepeated: true,
  },
  'key list': 'nothing',
  'key revoke': 'nothing',
  'keys rotate': 'nothing',
  'keys split': 'nothing',
  'keys reseal': 'nothing',
  'keys show': 'nothing',
  'keys retire': 'nothing',
  'dashboard invite': {
    act: 'user.invited',
    asks: 'invite an owner of an account',
    when: 'with `--role owner`',
    isRepeated: true,
  },
  'dashboard people': 'nothing',
  'dashboard reset-password': {
    act: 'user.password_reset',
    asks: 'reset a password without the second factor',
    when: 'with `--without-second-factor`',
    isRepeated: true,
  },
  'dashboard unlock': 'nothing',
  'webhook set': {
    act: 'webhook.set',
    asks: 'set a live webhook endpoint',
    when: 'with `--env live`',
    isRepeated: true,
  },
  'webhook roll': {
    act: 'webhook.rolled',
    asks: 'roll the signing secret of a live webhook endpoint',
    when: 'with `--env live`',
    isRepeated: true,
  },
  'webhook show': 'key',
  'webhook list': 'nothing',
  'webhook add': {
    act: 'webhook.created',
    asks: 'add a live webhook endpoint',
    when: 'with `--env live`',
    isRepeated: true,
  },
  'webhook update': {
    act: 'webhook.updated',
    asks: 'change the URL of a live webhook endpoint',
    when: 'with `--env live` and `--url`',
    isRepeated: true,
  },
  'webhook remove': 'nothing',
  'event list': 'nothing',
  'event show': 'nothing',
  'event redeliver': 'nothing',
  'balance show': 'nothing',
  'balance fund': 'key',
  'balance adjust': 'key',
  'balance reverse': 'key',
  'platform post': 'key',
  'bank-account add': 'nothing',
  'bank-account list': 'nothing',
  'bank-account update': 'nothing',
  'statement import': 'nothing',
  'statement check': 'nothing',
  'statement list': 'nothing',
  'statement show': 'nothing',
  'statement abandon': 'key',
  'statement match': 'key',
  'statement unmatch': 'key',
  'statement clear': 'key',
  'statement assign': 'nothing',
  'reconciliation show': 'nothing',
  'ledger verify': 'nothing',
  'ledger trial-balance': 'nothing',
  'wallet set': { act: 'wallet.set', asks: 'set a live wallet', when: 'with `--env live`' },
  'wallet show': 'nothing',
  'clock show': 'nothing',
  'clock stop': 'nothing',
  'clock advance': 'nothing',
  'payment show': 'nothing',
  'payment act': 'key',
  'refund show': 'nothing',
  'refund act': 'key',
  'payout show': 'nothing',
  'payout act': 'key',
  'dispute list': 'nothing',
  'dispute show': 'nothing',
  'dispute evidence': 'nothing',
  'dispute accept': 'key',
  'dispute act': 'key',
  'crypto-payment show': 'nothing',
  'crypto-payment act': 'key',
  'crypto-settlement show': 'nothing',
  'crypto-settlement act': 'key',
  'attention list': 'nothing',
  'attention acknowledge': 'nothing',
  'movement list': 'nothing',
  'movement show': 'nothing',
  'movement resolve': 'key',
  'operator create': {
    act: 'operator.created',
    asks: 'create an operator’s key',
    when: 'after the first two keys',
    isRepeated: true,
  },
  'operator list': 'nothing',
  'operator revoke': 'key',
  'approval list': 'nothing',
  'approval show': 'nothing',
  'approval approve': 'key',
  'approval reject': 'key',
  migrate: 'nothing',
  roles: 'nothing',
  'recipient forget': 'nothing',
  'payer export': 'nothing',
  'payer erase': 'nothing',
  'orphan list': 'nothing',
  'orphan restart': 'nothing',
  'callback list': 'nothing',
  'callback show': 'nothing',
  'callback deliver': 'nothing',
  'callback dismiss': 'nothing',
  'connector new': 'nothing',
  'connector check': 'nothing',
  'connector health': 'nothing',
  'connector pause': 'key',
  'connector resume': 'key',
  'connector release': {
    act: 'connector.released',
    asks: 'release a live connector after a restore',
    when: 'of a live connector',
  },
  'connector key create': {
    act: 'connector_key.created',
    asks: 'create a key that signs a connector’s callbacks',
    when: 'of a connector that is not of the sandbox only',
    isRepeated: true,
  },
  'connector key list': 'nothing',
  'connector key revoke': 'key',
  'routing show': 'nothing',
  'routing set': 'key',
  'routing remove': 'key',
  'audit list': 'nothing',
  'audit verify': 'nothing',
  reconcile: 'nothing',
  'sandbox statement': 'nothing',
  'sepa cut': 'nothing',
  'sepa import': 'nothing',
  'sepa file list': 'nothing',
  'sepa file show': 'nothing',
  'sepa file released': 'key',
  'sepa file resend': 'key',
  'sepa inbound list': 'nothing',
  'sepa inbound dismiss': 'key',
} as const satisfies Record<string, Need>;

type Table = typeof AUTHORITY;

/** Command that asks for an approval. */
export type ApprovedCommand = {
  [Command in keyof Table]: Table[Command] extends ApprovedAct ? Command : never;
}[keyof Table];

/** @returns undefined for an approval of a credit, which names no command */
export function findApprovedAct(command: string): ApprovedAct | undefined {
  const needs: Partial<Record<string, Need>> = AUTHORITY;
  const need = needs[command];
  return typeof need === 'object' ? need : undefined;
}

/** Says what a command asks for. @returns undefined for an approval of a credit */
export function describeAuthority(
  command: string,
  input: Readonly<Record<string, unknown>>,
): string | undefined {
  const params = Object.entries(omitUndefined(input)).map(
    ([name, value]) => `${name} ${formatParam(value)}`,
  );
  const asks = findApprovedAct(command)?.asks;
  return asks && `${asks}: ${params.join(', ')}`;
}

function formatParam(value: unknown): string {
  if (value === null) return 'off';
  if (Array.isArray(value)) return value.map(formatParam).join(' ');
  // A comma in a text begins no other param.
  if (typeof value === 'string') return value.includes(',') ? JSON.stringify(value) : value;
  if (typeof value !== 'object') return String(value);
  return Object.entries(value)
    .map(([name, part]) => `${name}=${formatParam(part)}`)
    .join(' ');
}
