import { assertNever } from '../assert';
import { toEnv } from '../environment';
import { AUDIT_LABELS, type AuditedAct } from '../operators/audit-log';
import { ROLE_NAMES, type Role } from './dashboard-role';

/** Changes on live and of the team of which the owners get a mail, with the text of the audit log. */
const REPORTED_ACTS = [
  'api_key.revoked',
  'brand.changed',
  'webhook.set',
  'webhook.created',
  'webhook.updated',
  'webhook.deleted',
  'webhook.rolled',
  'user.invited',
  'user.joined',
  'user.role_changed',
  'user.removed',
] as const satisfies readonly AuditedAct[];

type ReportedAct = (typeof REPORTED_ACTS)[number];

export function isReported(act: AuditedAct): act is ReportedAct {
  return REPORTED_ACTS.some((reported) => reported === act);
}

/** Holds no secret, nor names and reasons of operators. */
export type MailSubject =
  /** The link is made when the mail is sent. */
  | { kind: 'invitation'; invitation: string; role: Role }
  | { kind: 'signed_in'; browser: string; network: string }
  | { kind: 'password_changed' }
  | { kind: 'second_factor_on' }
  | { kind: 'second_factor_off' }
  | { kind: 'recovery_code_used' }
  | { kind: 'passkey_added'; name: string }
  | { kind: 'passkey_removed'; name: string }
  | { kind: 'live_key_created'; key_id: string; last4: string }
  | { kind: 'wallet_set'; network: string; address: string; counts_from: string }
  | { kind: 'changed'; act: ReportedAct; about: string; by: string }
  | { kind: 'payout_limit_changed'; before: string; after: string }
  | { kind: 'dispute_due'; dispute_id: string; due_at: string; livemode: boolean }
  | { kind: 'endpoint_disabled'; host: string; since: string; livemode: boolean };

export interface MailFacts {
  subject: MailSubject;
  merchant: string;
  /** ISO 8601. */
  at: string;
  publicUrl: string;
  link: string | undefined;
}

export interface MailText {
  title: string;
  text: string;
}

/** @see docs/dashboard.md#mail */
export function writeMail({ merchant, at, ...facts }: MailFacts): MailText {
  const [title, ...lines] = describe(facts);
  const head = [
    `Merchant: ${toOneLine(merchant)}`,
    `Time: ${at.slice(0, 16).replace('T', ' ')} UTC`,
  ];
  return { title, text: `${[...lines, '', ...head].join('\n')}\n` };
}

type Description = [title: string, ...lines: string[]];

function describe({ subject, publicUrl, link }: Omit<MailFacts, 'merchant' | 'at'>): Description {
  const page = (path: string) => `${publicUrl}/dashboard/${path}`;
  const secure = `If it was not you, choose another password, and end your other sessions: ${page('live/profile')}`;
  const verify = `If nobody of your team did it, see the audit log, and ask us: ${page('live/audit-log')}`;
  switch (subject.kind) {
    case 'invitation':
      return [
        'Invitation to a dashboard',
        `You are invited to the dashboard of the merchant below, as ${ROLE_NAMES[subject.role]}.`,
        `This link works once, for three days: ${link}`,
        '',
        'If you expected no invitation, ignore this mail.',
      ];
    case 'signed_in':
      return [
        'New sign-in to your dashboard',
        'Somebody signed in with your account, in a browser that had not done so before.',
        `Browser: ${subject.browser}`,
        `Network: ${subject.network}`,
        '',
        secure,
      ];
    case 'password_changed':
      return ['Your password was changed', 'Your password was changed.', '', secure];
    case 'second_factor_on': {
      const what = 'An app for one-time codes is now your second factor.';
      return ['Your second factor was switched on', what, '', secure];
    }
    case 'second_factor_off': {
      const what = 'Your app for one-time codes no longer counts.';
      return ['Your second factor was switched off', what, '', secure];
    }
    case 'recovery_code_used': {
      const what = 'One of your recovery codes replaced your second factor.';
      return ['A recovery code was used', what, '', secure];
    }
    case 'passkey_added':
      return [
        'A passkey was added',
        `You have a new passkey: ${toOneLine(subject.name)}`,
        '',
        secure,
      ];
    case 'passkey_removed':
      return [
        'A passkey was removed',
        `This passkey no longer works: ${toOneLine(subject.name)}`,
        '',
        secure,
      ];
    case 'live_key_created': {
      const key = `Key: ${subject.key_id}, which ends in ${subject.last4}`;
      return ['A live API key was created', key, '', verify];
    }
    case 'wallet_set':
      return [
        'A live wallet was changed',
        `Network: ${subject.network}`,
        `Address: ${subject.address}`,
        `Takes effect: ${subject.counts_from}`,
        '',
        verify,
      ];
    case 'changed': {
      const env = subject.act.startsWith('user.') ? '' : ' on live';
      const changed = `Changed: ${toOneLine(subject.about) || 'see the audit log'}`;
      const title = `${AUDIT_LABELS[subject.act]}${env}`;
      return [title, changed, `By: ${toOneLine(subject.by)}`, '', verify];
    }
    case 'payout_limit_changed':
      return [
        'Your payout limit was changed',
        'Our operators changed the amount that may be paid out in a day, in minor units.',
        `Before: ${subject.before || 'none'}`,
        `Now: ${subject.after || 'none'}`,
        '',
        verify,
      ];
    case 'endpoint_disabled':
      return [
        'A webhook endpoint was disabled',
        'No event could be delivered to this endpoint for days, so it gets no more of them.',
        `Endpoint: ${subject.host}`,
        `Failing since: ${subject.since}`,
        '',
        'If you expected no more events there, do nothing. Otherwise enable it once it works, and send what it missed again: ' +
          page(`${toEnv(subject.livemode)}/webhooks`),
      ];
    case 'dispute_due':
      return [
        'A dispute needs an answer',
        'A bank disputes a payment, and has no evidence from you yet.',
        `Dispute: ${subject.dispute_id}`,
        `Evidence is taken until: ${subject.due_at.slice(0, 16).replace('T', ' ')} UTC`,
        '',
        'Send evidence, or accept the dispute: ' +
          page(`${toEnv(subject.livemode)}/disputes/${subject.dispute_id}`),
      ];
    default:
      return assertNever(subject);
  }
}

/** A name can't add lines to a mail. */
function toOneLine(name: string): string {
  return name.replace(/\s+/g, ' ').trim();
}
