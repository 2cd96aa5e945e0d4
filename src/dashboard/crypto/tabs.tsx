import type { Call } from '../route';

const TABS = [
  { name: 'Crypto payments', path: '/crypto/payments' },
  { name: 'Settlements', path: '/crypto/settlements' },
  { name: 'Wallets', path: '/crypto/wallets' },
] as const;

/** Links between the pages of coins. */
export function CryptoTabs({ call }: { call: Call }) {
  return (
    <nav class="tabs" aria-label="Crypto">
      {TABS.map(({ name, path }) => (
        <a
          key={path}
          href={call.href(path)}
          aria-current={call.path.startsWith(path) ? 'page' : undefined}
        >
          {name}
        </a>
      ))}
    </nav>
  );
}
