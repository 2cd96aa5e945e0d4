import { Icon } from './icons';
import type { PageLanguage } from './language';
import { LANGUAGE_CODES, TEXTS } from './texts';

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
