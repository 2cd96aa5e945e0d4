import type { ComponentChildren } from 'preact';
import { renderToString } from 'preact-render-to-string';
import type { ShownBrand } from '../service/money/payment-pages';
import { accentPath, logoPath } from './brand';
import { Icon, type IconName } from './icons';

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
  const { lang = 'en', title, stylesheet, accent, script, children, ...timing } = document;
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
        <Timing {...timing} />
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

function Timing({ reloadAfter, goTo }: Pick<Document, 'reloadAfter' | 'goTo'>) {
  if (goTo !== undefined) return <meta http-equiv="refresh" content={`0;url=${goTo}`} />;
  if (reloadAfter === undefined) return null;
  return (
    <noscript>
      <meta http-equiv="refresh" content={String(reloadAfter)} />
    </noscript>
  );
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
