import type { ComponentChildren } from 'preact';
import { mayAct, ROLE_NAMES } from '../../domain/account/dashboard-role';
import { renderDocument } from '../../pages/layout';
import type { Flash } from '../../service/merchants/team/sessions';
import type { Dashboard } from './context';
import { Note, When } from './parts';
import type { Env, Viewer } from './route';

/** Names are a contract. @see docs/dashboard.md#names-that-scripts-may-use */
const NAVIGATION: readonly NavigationEntry[] = [
  { name: 'Overview', path: '/overview' },
  { name: 'Payments', path: '/payments' },
  { name: 'Refunds', path: '/refunds' },
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

export function renderCard({ children, ...shell }: Shell): string {
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
          {isReminderDue(viewer, path) && <SecondFactorReminder />}
          {flash !== null && <Note tone={flash.tone}>{flash.text}</Note>}
          {children}
        </main>
      </div>
    </div>,
  );
}

function isReminderDue({ user, livemode }: Viewer, path: string): boolean {
  return livemode && user.role === 'owner' && !user.hasSecondFactor && !path.startsWith('/profile');
}

function SecondFactorReminder() {
  return (
    <p class="message note">
      Your password alone gives access to real money.{' '}
      <a href="/dashboard/live/profile">Add a second factor</a>
    </p>
  );
}

const FROZEN =
  'This account is frozen: nothing can be created or changed, here or with a key. Keys can be revoked ' +
  'and sessions ended. Ask us why.';

function Header({ viewer, current }: { viewer: Viewer; current: NavigationEntry | undefined }) {
  const { user, account, csrf } = viewer;
  return (
    <header>
      <EnvironmentSwitch viewer={viewer} path={current?.path ?? ''} />
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

function EnvironmentSwitch({ viewer, path }: { viewer: Viewer; path: string }) {
  return (
    <nav class="environment" aria-label="Environment">
      <span class="switch">
        {(['sandbox', 'live'] as const).map((env) => (
          <a
            key={env}
            href={`/dashboard/${env}${path}`}
            aria-current={env === viewer.env ? 'true' : undefined}
          >
            {ENVIRONMENTS[env].name}
          </a>
        ))}
      </span>
      <span>{ENVIRONMENTS[viewer.env].words}</span>
      {viewer.env === 'sandbox' && <Clock viewer={viewer} />}
    </nav>
  );
}

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
