import type { Context } from 'koa';
import type { ComponentChildren } from 'preact';
import { mayAct, ROLE_NAMES } from '../../domain/merchants/dashboard-role';
import { formatCount } from '../../domain/printable';
import { renderDocument } from '../../pages/layout';
import type { Flash } from '../../service/merchants/team/sessions';
import { type Dashboard, sendHtml } from './context';
import { Note, When } from './parts';
import type { Env, Viewer } from './route';

/** Names are a contract. @see docs/dashboard.md#names-that-scripts-may-use */
const NAVIGATION: readonly NavigationEntry[] = [
  { name: 'Overview', path: '/overview' },
  { name: 'Payments', path: '/payments' },
  { name: 'Refunds', path: '/refunds' },
  { name: 'Disputes', path: '/disputes' },
  { name: 'Payouts', path: '/payouts' },
  { name: 'Balances', path: '/balances' },
  { name: 'Crypto', path: '/crypto', crypto: true },
  { name: 'Webhooks', path: '/webhooks' },
  { name: 'Requests', path: '/requests' },
  { name: 'API keys', path: '/api-keys' },
  { name: 'Brand', path: '/brand' },
  { name: 'Team', path: '/team' },
  { name: 'Audit log', path: '/audit-log' },
  { name: 'Getting started', path: '/getting-started' },
];

interface NavigationEntry {
  name: string;
  path: string;
  crypto?: true;
}

export function findEntry(
  path: string,
  entries: readonly NavigationEntry[] = NAVIGATION,
): NavigationEntry | undefined {
  return entries.find((entry) => path === entry.path || path.startsWith(`${entry.path}/`));
}

interface Shell {
  title: string;
  assets: Dashboard['assets'];
  children: ComponentChildren;
}

interface SignedInShell extends Shell {
  viewer: Viewer;
  path: string;
  flash: Flash | null;
}

function renderCard({ children, ...shell }: Shell): string {
  return render(
    shell,
    <div class="card">
      <header class="brand">Payments dashboard</header>
      <main>{children}</main>
    </div>,
  );
}

export function renderSignedIn({ children, ...shell }: SignedInShell): string {
  const { viewer, path, flash } = shell;
  const visibleEntries = NAVIGATION.filter(
    ({ crypto }) => crypto !== true || viewer.account.crypto,
  );
  const current = findEntry(path, visibleEntries);
  const { user, livemode } = viewer;
  const lacksFactor = livemode && user.role === 'owner' && !user.hasSecondFactor;
  return render(
    shell,
    <div class={`app ${viewer.env}`}>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <Header viewer={viewer} current={current} />
      <div class="columns">
        <nav aria-label="Dashboard" class="navigation">
          {visibleEntries.map((entry) => (
            <a
              key={entry.path}
              href={`/dashboard/${viewer.env}${entry.path}`}
              aria-current={entry === current ? 'page' : undefined}
            >
              {entry.name}
            </a>
          ))}
        </nav>
        <main id="main">
          {viewer.account.frozen && <Note tone="bad">{FROZEN}</Note>}
          {lacksFactor && !path.startsWith('/profile') && (
            <p class="message note">
              Your password alone gives access to real money.{' '}
              <a href="/dashboard/live/profile">Add a second factor</a>
            </p>
          )}
          {flash !== null && <Note tone={flash.tone}>{flash.text}</Note>}
          {children}
        </main>
      </div>
    </div>,
  );
}

const FROZEN =
  'This account is frozen: nothing can be created or changed, here or with a key. Keys can be revoked ' +
  'and sessions ended. Ask us why.';

function Header({ viewer, current }: { viewer: Viewer; current: NavigationEntry | undefined }) {
  const { user, account, csrf } = viewer;
  return (
    <header>
      <nav class="environment" aria-label="Environment">
        <span class="switch">
          {(['sandbox', 'live'] as const).map((env) => (
            <a
              key={env}
              href={`/dashboard/${env}${current?.path ?? ''}`}
              aria-current={env === viewer.env ? 'true' : undefined}
            >
              {ENVIRONMENTS[env].name}
            </a>
          ))}
        </span>
        <span>{ENVIRONMENTS[viewer.env].words}</span>
        {viewer.env === 'sandbox' && <Clock viewer={viewer} />}
      </nav>
      <div class="bar">
        <strong class="merchant">{account.name}</strong>
        <a class="who" href={`/dashboard/${viewer.env}/profile`}>
          {user.email} <span class="muted">({ROLE_NAMES[user.role]})</span>
        </a>
        <form method="post" action="/dashboard/sign-out">
          <input type="hidden" name="csrf" value={csrf} />
          <button type="submit" class="plain small">
            Sign out
          </button>
        </form>
      </div>
    </header>
  );
}

const ENVIRONMENTS: Readonly<Record<Env, { name: string; words: string }>> = {
  sandbox: { name: 'Sandbox', words: 'Test data: no real money moves here.' },
  live: { name: 'Live', words: 'Real payments, real money.' },
};

/** @see docs/api.md#sandbox-clock */
function Clock({ viewer }: { viewer: Viewer }) {
  const { account, user, csrf } = viewer;
  const { offset_ms = 0, target } = account.clock ?? {};
  const at = new Date(Date.now() + offset_ms).toISOString();
  return (
    <form class="clock" method="post" action="/dashboard/sandbox/clock">
      {offset_ms > 0 && (
        <span>
          {target === undefined ? 'Clock: ' : 'The clock moves: '}
          <When at={at} />
        </span>
      )}
      {mayAct(user.role, 'clock.advance') && (
        <>
          <input type="hidden" name="csrf" value={csrf} />
          <label for="clock-days">Days</label>
          <input id="clock-days" type="number" name="days" min="1" max="1100" required />
          <button type="submit" class="plain small">
            Move the clock
          </button>
        </>
      )}
    </form>
  );
}

function render({ title, assets }: Omit<Shell, 'children'>, body: ComponentChildren): string {
  return renderDocument({
    title: `${title} · Payments dashboard`,
    stylesheet: assets.css,
    script: assets.js,
    children: body,
  });
}

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
