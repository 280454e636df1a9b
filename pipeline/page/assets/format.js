"use strict";
// How numbers are written: rounded as the command rounds them.

const COMMAS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 20 });

const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact" });

/** Formats with commas and a fixed number of decimals, made once: making one takes longer than using it. */
const DECIMALS = Array.from({ length: 9 }, (_, decimals) => new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }));

/** A number with commas and the given number of decimals. */
const fixed = (number, decimals) => DECIMALS[decimals].format(number);

/** Hundredths of a cent as dollars with two decimals, halves to even; below a dollar with the decimals that there are. */
function dollars(hundredths) {
  if (hundredths < 10000) return String(hundredths / 10000).replace(/^(\d+)$/, "$1.00").replace(/\.(\d)$/, ".$10");
  const cents = Math.floor(hundredths / 100);
  const rest = hundredths % 100;
  return fixed((cents + Number(rest > 50 || (rest === 50 && cents % 2 === 1))) / 100, 2);
}

const money = (hundredths) => `$${dollars(hundredths)}`;
const between = (low, high) => `${money(low)} to ${money(high)}`;

/** A price with two decimals or, below a dollar, with all that there are (price_text of numbers.py). */
function priceText(usd) {
  if (usd >= 1) return fixed(usd, 2);
  return usd.toFixed(8).replace(/0{1,6}$/, "");
}

const rate = (usd) => `$${priceText(usd)}`;
/** What CPU and memory cost besides the price, where they do. */
const hostText = (usd) => (usd > 0 ? ` + ${rate(Number(usd.toFixed(3)))} host` : "");

/** A number without decimals from 1,000 on, with one from 10 on, with two from 0.1 on, else two digits (number_text). */
function numberText(number) {
  const size = Math.abs(number);
  if (size >= 1000) return fixed(number, 0);
  if (size >= 10) return fixed(number, 1);
  return size >= 0.1 ? number.toFixed(2) : String(Number(number.toPrecision(2)));
}

/** A number with the given significant digits, and zeros that count. */
function significant(number, digits) {
  if (number === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(number)) + 1e-9) + 1;
  return whole >= digits ? COMMAS.format(number) : number.toFixed(Math.min(digits - whole, 6));
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const words = (name) => name.replaceAll("_", " ");
const kindWords = (kind) => kind.replaceAll("_", "-");

/** Names as a choice: a, b or c. */
const choiceOf = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names[names.length - 1]}`);

/** A probability in tenths of a percent; 995 is over 99%, 5 under 1%. */
function percent(tenths) {
  return tenths === 995 ? "over 99%" : tenths === 5 ? "under 1%" : `${tenths / 10}%`;
}

const share = (number) => (number === null ? "" : `${(100 * number).toFixed(0)}%`);
const signed = (number) => (number === null ? "" : Math.abs(number) < 0.005 ? "0%" : `${number < 0 ? "\u2212" : "+"}${Math.abs(100 * number).toFixed(0)}%`);

const DAY = 86400000;

/** Days from a day (2026-08-22) to today, by the clock of who reads this, in UTC. */
function ageDays(day) {
  return day === null ? null : Math.floor(Date.now() / DAY) - Math.floor(Date.parse(`${day}T00:00:00Z`) / DAY);
}

function ageText(days) {
  if (days < 0) return "after today";
  return days === 0 ? "today" : days === 1 ? "1 day" : `${COMMAS.format(days)} days`;
}

const plural = (count, noun) => `${COMMAS.format(count)} ${noun}${count === 1 ? "" : "s"}`;

function tokensText(tokens) {
  for (const [size, unit] of [[1e12, "T"], [1e9, "B"], [1e6, "M"]]) if (tokens >= size) return `${COMMAS.format(Number((tokens / size).toPrecision(6)))}${unit}`;
  return COMMAS.format(tokens);
}
