package main

import (
	"strings"
)

// Every character that may stand in a suffix, and the suffixes made of them.
const suffixLetters = "eEinumkKMGTP"

var (
	signs    = []string{"", "+", "-"}
	suffixes = []string{
		"", "n", "u", "m", "k", "M", "G", "T", "P", "E",
		"Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
		"e0", "e1", "e2", "e3", "E3", "e+3", "e-3", "E-3", "e9", "e-9", "e-10", "e-12", "E19", "e21",
	}
	numbers = []string{
		"", ".", "0", "00", "0.0", "0.00000000000", "1", "5", "5.", "05", ".5", "0.5", "1.5", "1.500", "2.25", "10",
		"999", "1000", "1001", "1023", "1024", "1025", "1536", "1048576", "0.001", "0.0001", "1.0001",
		"1.000000001", "1.0000000001", "0.000000000000000000001", "12.345678901234567890123",
		"999999999999999999", "1000000000000000000",
		"9223372036854775807", "9223372036854775808", "18446744073709551616", "1234567890123456789012345",
	}
)

// systematicTexts is every sign with every number and every suffix, and texts that are malformed in every way
// one thing can be wrong.
func systematicTexts() []string {
	var texts []string
	for _, number := range numbers {
		for _, suffix := range suffixes {
			for _, sign := range signs {
				texts = append(texts, sign+number+suffix)
			}
		}
	}
	texts = append(texts, unknownSuffixes()...)
	texts = append(texts, malformed()...)
	return append(texts, extremes()...)
}

// unknownSuffixes has every suffix of one or two letters (the known ones too) and known ones with a tail.
func unknownSuffixes() []string {
	var texts []string
	for _, first := range suffixLetters {
		texts = append(texts, "1"+string(first))
		for _, second := range suffixLetters {
			texts = append(texts, "1"+string(first)+string(second))
		}
	}
	for _, suffix := range suffixes {
		for _, tail := range []string{"0", "3", "i", "B", "b", " ", "-", "+", "+3", "-3", ".", ".5", "e", "e3", "m"} {
			texts = append(texts, "1"+suffix+tail)
		}
	}
	return texts
}

func malformed() []string {
	texts := []string{"--1", "++1", "+-1", "-+1", "1-", "1+", "1-1", "- 1", "1..5", "..5", "1.2.3", "..", "1.-5", "-.-"}
	for _, strange := range []string{" ", "\t", "\n", "\x00", "x", "_", ",", "/", "\"", "'", "é", "１", "µ", "∞", "%", "$"} {
		texts = append(texts, strange, strange+"1", "1"+strange, "1"+strange+"1", "1"+strange+"Ki", "1.5"+strange+"5m")
	}
	texts = append(texts, "NaN", "nan", "Inf", "-Inf", "0x10", "0b1", "0o7", "1_000", "1,000", "1/2", "50%", "null", "true")
	return append(texts, "1e", "1E", "1e+", "1e-", "1e1.5", "1e1e1", "1e 3", "1ee3", "1Ki3", "1k3", "1e3k", "1e3Ki", "1Kik")
}

// extremes are long and large. No exponent is very negative: the library would compute the power of ten.
func extremes() []string {
	texts := []string{
		"1e999999999", "-1e999999999", "0e999999999", "1e2147483647", "1e400", "12e399", "1e-400",
		"1e4294967296", "-12e4294967299", // the library keeps 32 bits of an exponent
		"1e9223372036854775808", "1e-9223372036854775809", "1e99999999999999999999999", "1e00000000000000000000003",
		strings.Repeat("9", 38), strings.Repeat("9", 39), strings.Repeat("9", 60), "-" + strings.Repeat("9", 60),
		"1" + strings.Repeat("0", 60), strings.Repeat("0", 300) + "7", "0." + strings.Repeat("0", 300) + "7",
		"0." + strings.Repeat("0", 300) + "7e301", strings.Repeat("1", 300) + "e-299", "1." + strings.Repeat("0", 300) + "Ki",
		"1." + strings.Repeat("0", 300) + "1Ki", "-1." + strings.Repeat("0", 300) + "1", "0." + strings.Repeat("9", 200) + "Ei",
		strings.Repeat("9", 100) + "Ki", strings.Repeat("9", 100) + "n",
	}
	// Around every limit: of int64 in units and in binary units, and of ours (10^29 units).
	for _, text := range []string{
		"9223372036854775806", "9007199254740991Ki", "9007199254740992Ki", "7Ei", "7.9999999999999999999Ei", "7.99Ei",
		"8191Pi", "8192Pi", "8Ei", "9Ei", "16Ei", "99999999999Ei", "9.2E", "9.3E", "999E", "999999E", "1234567E",
		"99999999999999999999999999999", "100000000000000000000000000000", "100000000000E", "99999999999E", "99999999999.999999999E",
		"1e28", "1e29", "1e30", "9e28", "99e27", "0.1e30", "100e27", "101e27", "9223372036854775.807", "9223372036854775807m",
		"9223372036854775808m", "9223372036854775807.5", "9223372036854775806.5", "9223372036854775.8075",
	} {
		texts = append(texts, text, "-"+text)
	}
	return texts
}

// pair is two texts that the library accepts.
type pair struct{ a, b string }

func systematicPairs() []pair {
	texts := []string{
		"0", "0Ki", "0e3", "1", "-1", "1n", "-1n", "1u", "999m", "1.5", "-1.5", "1023", "1024", "1k", "1Ki", "-1Ki", "1.3Ki", "1e3",
		"-1e3", "1025e-3", "512Mi", "1Gi", "-1Gi", "2.5Gi", "1G", "8Ei", "-8Ei", "1E", "9223372036854775807", "999999999999999999n",
		"1234567890123456789.987654321", "1e24",
	}
	var pairs []pair
	for _, a := range texts {
		for _, b := range texts {
			pairs = append(pairs, pair{a, b})
		}
	}
	return pairs
}
