import type { Context } from 'koa';
import type { ComponentChildren } from 'preact';
import { formatCount } from '../../domain/format-count';
import { type Dashboard, sendHtml } from './context';
import { renderCard } from './layout';
import { Note } from './parts';

export const NOTICES = {
  not_found: {
    status: 404,
    title: 'There is no such page',
    text: 'It is not in this account and environment. Look in the list, or in the other environment.',
  },
  forbidden: {
    status: 403,
    title: 'Your role does not allow this',
    text: 'Ask an owner of the account to do it, or to change your role.',
  },
  frozen: {
    status: 403,
    title: 'This account is frozen',
    text: 'Nothing was done. Everything can be read, keys can be revoked and sessions ended. Ask us why.',
  },
  foreign: {
    status: 403,
    title: 'That did not come from this page',
    text: 'Nothing was done. Open the page again and use its buttons.',
  },
  unreadable: {
    status: 400,
    title: 'The form could not be read',
    text: 'Nothing was done. Open the page again, and send less.',
  },
  too_many: {
    status: 429,
    title: 'Too many pages at once',
    text: 'Nothing was done. Wait ten seconds, then load the page again.',
  },
  link_over: {
    status: 410,
    title: 'This link no longer works',
    text: 'It works once, and for three days. Ask for a new invitation.',
  },
  trouble: {
    status: 503,
    title: 'We can’t show this right now',
    text: 'The fault is on our side. Check whether it was done before you try again.',
  },
} as const satisfies Record<string, { status: number; title: string; text: string }>;

export type NoticeName = keyof typeof NOTICES;

export function Notice({ name }: { name: NoticeName }) {
  const { title, text } = NOTICES[name];
  return (
    <div class="stack">
      <h1>{title}</h1>
      <p class="muted">{text}</p>
      <p>
        <a href="/dashboard">Back to the dashboard</a>
      </p>
    </div>
  );
}

interface Card {
  title: string;
  status?: number;
  fault?: string | undefined;
  children: ComponentChildren;
}

export function sendCard(ctx: Context, { assets }: Pick<Dashboard, 'assets'>, card: Card): void {
  const { title, status, fault } = card;
  const children = (
    <div class="stack">
      <h1>{title}</h1>
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
      {card.children}
    </div>
  );
  sendHtml(ctx, renderCard({ title, assets, children }), status);
}

export function sendNotice(ctx: Context, { assets }: Pick<Dashboard, 'assets'>, name: NoticeName) {
  const { title, status } = NOTICES[name];
  sendHtml(ctx, renderCard({ title, assets, children: <Notice name={name} /> }), status);
}

export const WRONG_CODE = 'The code is wrong, too old, or was used before.';

export function explainLimit(minutes: number): string {
  return `Too many attempts. Try again in ${formatCount(minutes, 'minute')}.`;
}
