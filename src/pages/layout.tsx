import type { ComponentChildren } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { encode } from 'uqr';
import type { PaymentMethodRules } from '../domain/payment/catalog';
import type { ShownBrand } from '../service/money/payments';
import { accentPath, logoPath } from './assets';
import type { PageLanguage } from './language';
import { LANGUAGE_CODES, TEXTS } from './texts';

interface Document {
  lang?: string;
  title: string;
  stylesheet: string;
  accent?: string | undefined;
  script?: string;
  /** Seconds until a browser without JavaScript reloads. */
  reloadAfter?: number;
  /** Redirects at once to a stored URL. */
  goTo?: string;
  children: ComponentChildren;
}

export function renderDocument(document: Document): string {
  const { lang = 'en', title, stylesheet, accent, script, children } = document;
  const { reloadAfter, goTo } = document;
  const html = (
    <html lang={lang}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex, nofollow" />
        <meta name="color-scheme" content="light dark" />
        <title>{title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={stylesheet} />
        {accent !== undefined && <link rel="stylesheet" href={accentPath(accent)} />}
        {goTo !== undefined && <meta http-equiv="refresh" content={`0;url=${goTo}`} />}
        {goTo === undefined && reloadAfter !== undefined && (
          <noscript>
            <meta http-equiv="refresh" content={String(reloadAfter)} />
          </noscript>
        )}
        {script !== undefined && <script src={script} defer />}
      </head>
      <body>{children}</body>
    </html>
  );
  return `<!doctype html>${renderToString(html)}`;
}

interface Page extends Document {
  banner?: string;
  footer: string;
  languages?: ComponentChildren;
}

export function renderPage({ banner, footer, languages, children, ...document }: Page): string {
  return renderDocument({
    ...document,
    children: (
      <>
        {banner !== undefined && <header class="banner">{banner}</header>}
        <div class="sheet">
          <main>{children}</main>
          <footer>
            <p class="secure">
              <Icon name="lock" size={16} />
              <span>{footer}</span>
            </p>
            {languages}
          </footer>
        </div>
      </>
    ),
  });
}

export interface SignProps {
  icon: IconName;
  tone?: '' | 'good' | 'bad';
  title: string;
  text: string;
}

export function Sign({ icon, tone = '', title, text }: SignProps) {
  return (
    <>
      <div class={`sign ${tone}`}>
        <Icon name={icon} size={28} />
      </div>
      <div class="stack">
        <h1>{title}</h1>
        <p class="muted">{text}</p>
      </div>
    </>
  );
}

export function Shop({ name, logo }: ShownBrand) {
  return (
    <div class="shop">
      {logo === undefined ? (
        <span class="mark" aria-hidden="true">
          {[...name.trim()][0]?.toUpperCase() ?? '·'}
        </span>
      ) : (
        <img
          class="logo"
          src={logoPath(logo.hash)}
          width={logo.width}
          height={logo.height}
          alt=""
        />
      )}
      <span>{name}</span>
    </div>
  );
}

export function Detail({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Opens without JavaScript. */
export function LanguageSwitch({ code: current, texts, path }: PageLanguage) {
  return (
    <details class="languages">
      <summary aria-label={`${texts.frame.language}: ${texts.name}`}>
        <Icon name="globe" size={16} />
        <span>{texts.name}</span>
      </summary>
      <ul>
        {LANGUAGE_CODES.map((code) => (
          <li key={code}>
            <a
              href={`${path}?lang=${code}`}
              lang={code}
              hreflang={code}
              rel="nofollow"
              aria-current={code === current ? 'true' : undefined}
            >
              {TEXTS[code].name}
            </a>
          </li>
        ))}
      </ul>
    </details>
  );
}

type PageKind = PaymentMethodRules['page'];

const STROKES = {
  bank_selector: 'M3 10 12 4l9 6M5 10v8m4.7-8v8m4.6-8v8M19 10v8M3 20h18',
  wallet: 'M8 3h8a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H8a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2Zm3 15h2',
  card: 'M4 5h16a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2Zm-2 5h20M6 15h4',
  cash_reference: 'M5 3h14v18l-3-2-2 2-2-2-2 2-2-2-3 2V3Zm4 5h6m-6 4h6',
  voucher: 'M4 6h16v4a2 2 0 0 0 0 4v4H4v-4a2 2 0 0 0 0-4V6Zm10 0v12',
  lock: 'M6 11h12v9H6v-9Zm2.5 0V8a3.5 3.5 0 0 1 7 0v3',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  cross: 'm7 7 10 10M17 7 7 17',
  clock: 'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18Zm0 4v5l3.5 2',
  globe: 'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18Zm-9 9h18M12 3c5 5 5 13 0 18-5-5-5-13 0-18Z',
  link: 'M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.700-5.700L12 7m2 3a4 4 0 0 0-6-.4l-3 3A4 4 0 0 0 10.700 18.300L12 17',
} as const satisfies Record<
  PageKind | 'lock' | 'check' | 'cross' | 'clock' | 'globe' | 'link',
  string
>;

export type IconName = keyof typeof STROKES;

export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={STROKES[name]} />
    </svg>
  );
}

const MODULE_PIXELS = 4;

/** Draws dark on light in both color schemes because scanners require it. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { ecc: 'M', border: 4 });
  const darkRuns = data.flatMap((row, y) => {
    const runs = row
      .map((dark) => (dark ? '#' : ' '))
      .join('')
      .matchAll(/#+/g);
    return [...runs].map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`);
  });
  return (
    <svg
      class="qr"
      width={size * MODULE_PIXELS}
      height={size * MODULE_PIXELS}
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <path fill="#ffffff" d={`M0 0h${size}v${size}H0z`} />
      <path fill="#000000" d={darkRuns.join('')} />
    </svg>
  );
}
