"""Scripts and binary properties of the Unicode Character Database, version 17.0.

One entry starts at the beginning of a line and may run on over indented lines: its names, in
lower case without ``_``, separated by ``/``; then its ranges in base 36, each as the gap since the end of the last
range and, after ``-``, the length less one. `constrain.grammars.regex.unicode` reads it.
The Python library knows neither; what it does know (general categories) is taken from there.
"""

from __future__ import annotations

SCRIPTS = """\
adlam/adlm 2olc-23 4-9 4-1
ahom 1j40-q 2-e 4-m
anatolianhieroglyphs/hluw 1s00-g6
arabic/arab 16o-4 1-5 1-d 1-2 1-v 1-9 b-p 1-2z 1-x 28-1b 6o-x 5-22 1-s 1bv4-dp 2-3z w-f 34-4 1-3q 31f-u 1v-5
 1-11 1-f 181s-3 1-q 1-1 1 2 1-9 1-3 1 1 6 4 1 1 1-2 1-1 1 2 1 1 1 1 1-1 1 2-3 1-6 1-3 1-3 1 1-9 1-g 5-2 1-4
 1-g 1g-1
armenian/armn 10x-11 1-1j 1chv-4
avestan/avst 1gqo-1h 3-6
balinese/bali 5c0-24 1-1d
bamum/bamu www-2f 124o-fs
bassavah/bass 1zo0-t 2-5
batak/batk 5hc-1f 8-3
bengali/beng 1vk-3 1-7 2-1 2-l 1-6 1 3-3 2-8 2-1 2-3 8 4-1 1-4 2-o 1ii9-1
beriaerfe/berf 20f4-o 2-o
bhaiksuki/bhks 1k3k-8 1-18 1-d a-s
bopomofo/bopo kq-1 93t-16 34-v
brahmi/brah 1hq8-25 4-z 9
braille/brai 7wg-73
buginese/bugi 54w-r 2-1
buhid/buhd 4lc-j
canadianaboriginal/cans 3y8-hr fk-1x 1ewq-f
carian/cari 1f34-1c
caucasianalbanian/aghb 1flc-1f b
chakma/cakm 1hxc-1g 1-h
cham xkw-1i 9-d 2-9 2-3
cherokee/cher 3vk-2d 2-5 twy-27
chorasmian/chrs 1ho0-r
common/zyyy 0-1s q-5 q-1a 1-e 1-4 n v ch-12 5-4 2-j 38 9 6 1 hp 6 e 3 w 4c ec 3l-1 yh b9-3 82 167-2 1z-1
 5n-1 1 y5 d 7-3 1-5 1-2 2 lh-b 2-2e 1-a 3-a 1-f g-10 1n-11 1-2 2-5 1-q 1-g 15-2 4-ih m-a l-pr 74-hf 2-3t
 e8-2l 2-3 b0-k 1 1-o f-7 4-3 2j-1 3 2i-1 43-f w-11 9 1c-1r v-28 1b 2g-4n 534-1r hkw-x 2u-2 4l-9 6s 4g az
 e-1 g5u-1 5s-9 m-y 1-i 1-3 43 1-v q-5 q-a a 19-1 1s-6 1-6 a-4 76-2 4-18 3-8 28-c 1f-18 6c-q 10o4-3 318-70
 3-c3 6-m 1-2 8-w 2a-37 1o-6t a-12 2-1p 3-g 8-1 7-t 4-29 28-a 2-10 1q-j c-j c-2e 9-o 3r-2c 1-1y 1-1 2 2-1
 2-3 1-b 1 1-6 1-1s 1-3 2-7 1-6 1-r 1-3 1-4 1 3-6 1-9g 1-83 2-1d lc-s 3f8-1v 24-1o jm-17 4-2r c-e 2-e 1-e
 1-10 a-4u 1j-p 1-1 d-17 4-8 7-1 e-5 4a-rd 2-g 3-c 3-63 4-b 4-r 4-1j 8-9 6-13 8-t 2-b 4-1 e-8 13-9j 8-d 2-c
 3-1y 1 3-h 1-c 3-b 5-42 1-2u gvly u-2n
coptic/copt/qaac rm-d 80g-37 5-6
cuneiform/xsux 1kw0-pl 2u-8z c-2f 4k-1m
cypriot/cprt 1g5c-5 2 1-17 1-1 3 2
cyprominoan/cpmn 1nyo-2q
cyrillic/cyrl sg-3o 2-4o 4ls-a 4g 24 38n-v nr4-2n ham-1 18n4-1p x
deseret/dsrt 1fcw-27
devanagari/deva 1s0-28 4-e 2-p vhc-v mio-a
divesakuru/diak 1ji8-6 2 2-7 1-1 1-t 1-1 2-b 9-9
dogra/dogr 1jb4-1n
duployan/dupl 2fpc-2y 5-c 3-8 7-9 2-3
egyptianhieroglyphs/egyp 1o1s-ut a-32y
elbasan/elba 1fk0-13
elymaic/elym 1hpc-m
ethiopic/ethi 3k0-20 1-3 2-6 1 1-3 2-14 1-3 2-w 1-3 2-6 1 1-3 2-e 1-1k 1-3 2-1u 2-v 3-p 546-m 9-6 1-6 1-6
 1-6 1-6 1-6 1-6 1-6 opu-5 2-5 2-5 9-6 1-6 1qk1-6 1-3 1-1 1-e
garay/gara 1h6o-11 3-s 8-1
georgian/geor 3a8-11 1 5 2-16 1-3 2a8-16 2-2 37k-11 1 5
glagolitic/glag 8ow-2n 2e1s-6 1-g 2-6 1-1 1-4
gothic/goth 1f74-q
grantha/gran 1ibk-3 1-7 2-1 2-l 1-6 1-1 1-4 2-8 2-1 2-2 2 6 5-6 2-6 3-4
greek/grek og-3 1-2 2-3 1 4 1 1-2 1 1-j 1-1q e-f 4yu-4 1e-4 4-4 2c 8w-l 2-5 2-11 2-5 2-7 1 1 1 1-u 2-1g 1-e
 1-d 2-5 1-i 2-2 1-8 87 rb2 gyi-26 h 155r-1x 2p9-1
gujarati/gujr 22p-2 1-8 1-2 1-l 1-6 1-1 1-4 2-9 1-2 1-2 2 f-3 2-b 7-6
gunjalagondi/gong 1kdc-5 1-1 1-10 1-1 1-5 7-9
gurmukhi/guru 1z5-2 1-5 4-1 2-l 1-6 1-1 1-1 1-1 2 1-4 4-1 2-2 3 7-3 1 7-g
gurungkhema/gukh 1xq8-1l
han/hani 96o-p 1-2g c-5x 1b 1 p-8 e-3 qs-533 1s-g73 hkw-a5 2-2x n48-1 c-6 sg9-wyn w-3dq 1-4gd 2-5rk f-h9
 1wi-f1 15u-3t6 5-6jt
hangul/hang 3cw-73 5ym-1 75-2l 35-u 1t-u nhd-s hv-8mb c-m 4-1c 7tw-u 3-5 2-5 2-5 2-2
hanifirohingya/rohg 1h4w-13 8-9
hanunoo/hano 4kg-k
hatran/hatr 1gbk-i 1-1 5-4
hebrew/hebr 13l-1k 6-q 4-5 1cfc-p 1-4 1 1-1 1-1 1-9
hiragana/hira 9j5-2d 6-2 23q9-7y 3 e t-2 crx
imperialaramaic/armi 1g74-l 1-8
inherited/zinh/qaai lc-33 7p-1 ck-a q kg-3 3ff-1s db-2 1-c 1-6 4 6 3-1 5i-1r ek-1 5e-w 309-3 2z-1 14kl-f g-d
 r3 6a 38a 1138-19 2-m dc-1 1q-2 h-7 2-6 u-3 4t-1 h40z-6n
inscriptionalpahlavi/phli 1gtc-i 5-7
inscriptionalparthian/prti 1gsg-l 2-7
javanese/java xhc-25 2-9 4-1
jurchen/jurc 26m8-pd e-1e
kaithi/kthi 1hts-1u a
kannada/knda 2gw-c 1-2 1-m 1-9 1-4 2-8 1-2 1-3 7-1 5-2 1-3 2-9 1-2
katakana/kana 9lt-2h 2-2 6o-f 5s-1a 1-2f 14b2-9 1-18 ytu-3 1-6 1-1 1 7z-2 1-4 18 e-4
katakanaorhiragana/hrkt 
kawi 1kow-g 1-14 3-s
kayahli/kali xds-19 1
kharoshthi/khar 1gjk-3 1-1 5-7 1-2 1-s 2-2 4-9 7-8
khitansmallscript/kits 20o4 5cr-d6 10
khmer/khmr 4n4-2l 2-9 6-9 di-v
khojki/khoj 1i4g-h 1-1a
khudawadi/sind 1i9c-1m 5-9
kiratrai/krai 205c-1l
lao/laoo 2v5-1 1 1-4 1-n 1 1-m 2-4 1 1-6 1-9 2-3
latin/latn 1t-p 6-p 1b f 5-m 1-u 1-cg 13-4 55n-11 6-1c 5-3 5-c 1-1x 1t-73 a9 d g-f 3u-1 6 r h-14 253-v
 o82-2t 3-2a 4 e-e mo-16 1-8 1-3 2-1 fpu-6 t6-p 6-p 1lx-5 1-15 1-d 16io-3l e-6 1i-11 2-a
lepcha/lepc 5j4-1j 3-e 3-2
limbu/limb 4xs-u 1-b 4-b 4 3-b
lineara/lina 1fr4-8m 9-l a-7
linearb/linb 1ekg-b 1-p 1-i 1-1 1-e 2-d y-3e
lisu wk0-1b o8g
lycian/lyci 1f28-s
lydian/lydi 1gdc-p 5
mahajani/mahj 1hzk-12
makasar/maka 1ko0-o
malayalam/mlym 2kg-c 1-2 1-1e 1-2 1-5 4-f 2-p
mandaic/mand 1mo-r 2
manichaean/mani 1gow-12 4-b
marchen/marc 1k6o-v 2-l 1-d
masaramgondi/gonm 1kao-6 1-1 1-17 3 1-1 1-8 8-9
medefaidrin/medf 20cg-2i
meeteimayek/mtei xr4-m 5l-19 2-9
mendekikakui/mend 2oe8-5g 2-f
meroiticcursive/merc 1ggw-n 4-j 2-19
meroitichieroglyphs/mero 1gg0-v
miao/plrd 20hs-22 4-1k 7-g
modi 1iww-1w b-9
mongolian/mong 4qo-1 2 1-j 6-2g 7-16 1e45-c
mro/mroo 1zk0-u 1-9 4-1
multani/mult 1i80-6 1 1-3 1-e 1-a
myanmar/mymr 35s-4f u9s-u 2p-v le8-j
nabataean/nbat 1g8w-u 8-8
nagmundari/nagm 2nrk-15
nandinagari/nand 1jmo-7 2-19 2-a
newa 1iio-2j 1-4
newtailue/talu 51c-17 4-p 6-a 3-1
nko/nkoo 1j4-1m 2-2
nushu/nshu 20o1 cy6-az
nyiakengpuachuehmong/hmnp 2n0g-18 3-d 2-9 4-1
ogham/ogam 4g0-s
olchiki/olck 5lc-1b
oldhungarian/hung 1h1c-1e d-1e 7-5
olditalic/ital 1f5s-z 9-2
oldnortharabian/narb 1gn4-v
oldpermic/perm 1f80-16
oldpersian/xpeo 1fa8-z 4-d
oldsogdian/sogo 1hj4-13
oldsoutharabian/sarb 1gm8-v
oldturkic/orkh 1gxs-20
olduyghur/ougr 1hm8-p
olonal/onao 2nyo-16 4
oriya/orya 269-2 1-7 2-1 2-l 1-6 1-1 1-4 2-8 2-1 2-2 5-4 4-1 1-4 2-h
osage/osge 1fhs-z 4-z
osmanya/osma 1fgg-t 2-9
pahawhhmong/hmng 1zpc-1x a-9 1-6 1-k 5-i
palmyrene/palm 1g80-v
paucinhau/pauc 1juo-1k
phagspa/phag x8g-1j
phoenician/phnx 1gcg-r 3
protocuneiform/pcun 1m08-4j
psalterpahlavi/phlp 1gu8-h 7-3 c-6
rejang/rjng xf4-z b
runic/runr 4gw-22 3-a
samaritan/samr 1kw-19 2-e
saurashtra/saur xa8-1x 8-b
seal 5csg-8qn
sharada/shrd 1i0w-2n 1vk-7
shavian/shaw 1ff4-1b
siddham/sidd 1itc-1h 2-11
sidetic/sidt 1ge8-p
signwriting/sgnw 2l8g-i3 f-4 1-e
sinhala/sinh 2o1-2 1-h 3-n 1-8 1 2-6 3 4-5 1 1-7 6-9 2-2 1fcc-j
sogdian/sogd 1hkg-15
sorasompeng/sora 1hw0-o 7-9
soyombo/soyo 1jrk-2a
sundanese/sund 5fk-1r 74-7
sunuwar/sunu 1k1s-x e-9
sylotinagri/sylo x6o-18
syriac/syrc 1ds-d 1-1n 2-2 7k-a
tagalog/tglg 4jk-l 9
tagbanwa/tagb 4m8-c 1-2 1-1
taile/tale 500-t 2-4
taitham/lana 55s-1q 1-s 2-a 6-9 6-d
taiviet/tavt xog-1u o-4
taiyo/tayo 2o5c-u 1-l 8-1
takri/takr 1j0g-1l 6-9
tamil/taml 29u-1 1-5 3-2 1-3 3-1 1 1-1 3-1 3-2 3-b 4-4 3-2 1-3 2 6 e-k 1ih1-1d d
tangsa/tnsa 1zlc-26 1-9
tangut/tang 20o0 v-5bz e8-w 2n-36
telugu/telu 2dc-c 1-2 1-m 1-f 2-8 1-2 1-3 7-1 1-2 1-1 2-3 2-9 7-8
thaana/thaa 1hc-1d
thai 2rl-1l 5-r
tibetan/tibt 2yo-1z 1-z 4-12 1-z 1-e 1-6 4-1
tifinagh/tfng 8xc-1j 7-1 e
tirhuta/tirh 1im8-1z 8-9
todhri/todr 1fpc-1f
tolongsiki/tols 1kfk-17 4-9
toto 2nbk-u
tulutigalari/tutg 1if4-9 1 2 1-11 1-9 1 2 1-3 1-9 1-1 8-1
ugaritic/ugar 1f9c-t 1
vai/vaii wlc-8b
vithkuqi/vith 1fn4-a 1-e 1-6 1-1 1-a 1-e 1-6 1-1
wancho/wcho 2ncw-1l 5
warangciti/wara 1jfk-2a c
yezidi/yezi 1hfk-15 1-2 2-1
yi/yiii vls-wc 3-1i
zanabazarsquare/zanb 1jpc-1z
"""

BINARY = """\
alphabetic/alpha 1t-p 6-p 1b a 4 5-m 1-u 1-cp 4-b e-4 7 1 2e t-h 1-1 2-3 1 6 1-2 1 1-j 1-2a 1-3u 8-4l 1-11
 1-1 6-14 2-1 z-d 1 1-1 1-1 1-2 6-q 4-3 t-a 5-1j 1-6 e-2t 1-7 4-7 4-2 a-2 2 g-1b d-2s o-w 9-1 4 5-n 2-i j-o
 7-a 5-n 1-6 7 8-15 a-b 3-6 6-23 1-f 1-2 4-e d-i 1-7 2-1 2-l 1-6 1 3-3 3-7 2-1 2-1 1 8 4-1 1-4 c-1 a 4-2 1-5
 4-1 2-l 1-6 1-1 1-1 1-1 4-4 4-1 2-1 4 7-3 1 h-5 b-2 1-8 1-2 1-l 1-6 1-1 1-4 3-8 1-2 1-1 3 f-3 l-3 4-2 1-7
 2-1 2-l 1-6 1-1 1-4 3-7 2-1 2-1 9-1 4-1 1-4 d g-1 1-5 3-2 1-3 3-1 1 1-1 3-1 3-2 3-b 4-4 3-2 1-2 3 6 14-c
 1-2 1-m 1-f 3-7 1-2 1-2 8-1 1-2 1-1 2-3 s-3 1-7 1-2 1-m 1-9 1-4 3-7 1-2 1-2 8-1 5-2 1-3 d-2 c-c 1-2 1-14
 2-7 1-2 1-2 1 5-3 7-4 m-5 1-2 1-h 3-n 1-8 1 2-6 8-5 1 1-7 i-1 d-1l 5-6 6 1f-1 1 1-4 1-n 1 1-i 1-2 2-4 1 6
 e-3 w 1r-7 1-z 4-i 4-f 1-z 1v-1i 1 2-4 g-1r a-3 2-11 1 5 2-16 1-98 1-3 2-6 1 1-3 2-14 1-3 2-w 1-3 2-6 1 1-3
 2-e 1-1k 1-3 2-1u 11-f g-2d 2-5 3-h7 2-g 1-p 5-22 3-a 7-j b-k c-j c-c 1-2 1-1 c-1f 2-i e 4 1v-2g 7-16 5-1x
 a-u 1-b 4-8 n-t 2-4 b-17 4-p 1i-r 4-1q 2-j 1e n-1 b-2 1d-1f 1-e 1-7 1f-15 2-3 a-17 1-a e-1i m-2 a-z 2-a
 5-16 2-2 15-3 1-5 1-1 3 5-5b j-x b-7p 2-5 2-11 2-5 2-7 1 1 1 1-u 2-1g 1-6 1 3-2 1-6 3-3 2-5 4-c 5-2 1-6 38
 d f-g 2q 4 2-9 1 3-4 6 1 1 1-3 1-a 2-3 5-4 4 h-14 ml-1f 1ee-6c 6-3 3-1 c-11 1 5 2-1j 7 g-m 9-6 1-6 1-6 1-6
 1-6 1-6 1-6 1-6 1-v 1b d1-2 p-8 7-4 2-4 4-2d 6-2 1-2h 1-3 5-16 1-2l h-v 1c-f e8-533 1s-h3g 1v-19 2-7g 3-f
 a-1 k-1a 5-7 3-34 13-8 2-2u 2-2a 4 e-k 1-w o-1f c-1v 1 18-5 3 1-2 a-w 5-y d-s 3-1e 1-b f g-f a-4 1-1i 9-d
 i-m 3-1w 1 1 o-2 2-f 2-3 b-5 2-5 2-5 9-6 1-6 1-16 1-d 2-1 2-3e l-8mb c-m 4-1c 6is-a5 2-2x 12-6 c-4 5-b 1-c
 1-4 1 1-1 1-1 1-2z x-a2 i-1r 2-1h 14-b 38-4 1-3q 10-p 6-p b-2g 3-5 2-5 2-5 2-2 z-b 1-p 1-i 1-1 1-e 2-d y-3e
 1x-1g 7f-s 3-1c 1b-v d-t 5-16 5-t 2-z 4-7 1-4 16-4d i-z 4-z 4-13 8-1f c-a 1-e 1-6 1-1 1-a 1-e 1-6 1-1 3-1f
 c-8m 9-l a-7 o-5 1-15 1-d 1s-5 2 1-17 1-1 3 2-m a-m 9-u 1t-i 1-1 a-l a-p 6-p 12-1j 6-1 1s-3 1-1 5-7 1-2 1-s
 16-s 3-s z-7 1-r r-1h a-l a-i d-h 32-20 1j-1e d-1e d-13 y-r 3 5-m 6y-15 1-1 3-1 g-5 3-2 b-l 4 1 1-1 1-2 3-s
 a 8-l 16-h 1a-k r-m 9-1x 17-4 a-1k 9 d-o n-1e h-3 8-y 3 9-1r 1-3 9-1 a 1 z-h 1-x 2 6-3 1q-6 1 1-3 1-e 1-9
 7-1k n-3 1-7 2-1 2-l 1-6 1-1 1-4 3-7 2-1 2-1 3 6 5-6 s-9 1 2 1-11 1-9 1 2 1-3 1-1 3 1 18-1t 1-2 1-3 k-2
 u-1t 2-1 1 54-1h 2-6 p-5 y-1q 1 3 1n-1h 2 1z-q 2-d l-6 55-1k 2v-1r v-7 2 2-7 1-1 1-t 1-1 2-1 2-3 2l-7 2-19
 2-5 1 1-1 r-1e 2-9 h-1z 5 i-20 h 2d-7 2g-w v-8 1-18 1-6 1 1d-t 2-l 1-d 21-6 1-1 1-17 3 1-1 1-2 1 2-1 o-5
 1-1 1-10 1-1 1-3 1 n-17 k-1 6m-m 9-g 1-14 3-2 33 27-pl 2u-33 5-5q c-8m 1s9-2o f-tr h-5 p-32y 5-g6 5a1-1a
 1ch-fs 7-u h-26 h-t i-1b g-3 v-k 5-i c0-18 5v-1r w-o 2-o 18-22 4-1k 7-g 1s-1 1 c-6 9-5p6 10-x 2n-36 d-pd
 e-1e 5y5-3 1-6 1-1 1-88 9 t-2 2 e-4 7-az 1s4-2y 5-c 3-8 7-9 4 4m9-2c 1-1y 1-1 2 2-1 2-3 1-b 1 1-6 1-1s 1-3
 2-7 1-6 1-r 1-3 1-4 1 3-6 1-9g 1-o 1-o 1-u 1-o 1-u 1-o 1-u 1-o 1-u 1-o 1-7 1f8-3l e-6 1i-1l 1-g 2-6 1-1 1-4
 5-1p x 34-18 a-6 g 8x-t i-17 dg-r 6c-t 2 5r-u 1-l 8-1 68-6 1-3 1-1 1-e 1-5g 1n-1v 3 3 xg-3 1-q 1-1 1 2 1-9
 1-3 1 1 6 4 1 1 1-2 1-1 1 2 1 1 1 1 1-1 1 2-3 1-6 1-3 1-3 1 1-9 1-g 5-2 1-4 1-g hg-p 6-p 6-p 2uu-wyn w-3dq
 1-4gd 2-5rk f-h9 1wi-f1 15u-3t6 5-6jt upy-8qn
asciihexdigit/ahex 1c-9 7-5 q-5
cased 1t-p 6-p 1b a 4 5-m 1-u 1-5e 1-3 4-5r 2-y 7-1 u-4 2o 16-3 2-1 2-3 1 6 1-2 1 1-j 1-2a 1-3u 8-4l 1-11 1
 7-14 2-1 26r-11 1 5 2-16 1-3 io-2d 2-5 1oi-a 5-16 2-2 1s-5b 1s-7p 2-5 2-11 2-5 2-7 1 1 1 1-u 2-1g 1-6 1 3-2
 1-6 3-3 2-5 4-c 5-2 1-6 38 d g-f 2q 4 2-9 1 3-4 6 1 1 1-3 1-5 4 2-3 5-4 4 h-v 3-1 mp-1f 1ee-6c 6-3 3-1 c-11
 1 5 nwy-19 i-t 3o-2t 3-3 1-25 4 e-5 1-2 mt-16 1-d 2-1 2-27 fnk-6 c-4 sp-p 6-p x1-27 2o-z 4-z 38-a 1-e 1-6
 1-1 1-a 1-e 1-6 1-1 cj 2-2 1-15 1-d xs-1e d-1e 2l-l a-l 26y-1r gv4-1r w-o 2-o jzg-2c 1-1y 1-1 2 2-1 2-3 1-b
 1 1-6 1-1s 1-3 2-7 1-6 1-r 1-3 1-4 1 3-6 1-9g 1-o 1-o 1-u 1-o 1-u 1-o 1-u 1-o 1-u 1-o 1-7 1f8-9 1-38 g-6
 1i-1e 1c-1p 1oy-1v 1kc-p 6-p 6-p
dash 19 124 1f 2td sl 1l5-5 1p 13 f au 2dg 2 v-1 4 s ce j 33 14ls-1 11 a 4p 2u8 8u
defaultignorablecodepoint/di 4t ip jw 282-1 18z-1 2d-4 1kr-4 q-4 1d-f 3ck 14ez-f 6n 4g 27-8 119j-3 43z-7
 h405-35r
emoji z 6 5-9 33 4 68d c 60 m 2i-5 f-1 a7-1 c 4m p-a 4-2 5j 6f-1 a 9 1m-3 1-4 9 2 2-1 2 4 2 1-1 2 3 3-1 8-2
 5 1 5-b b-1 2 1-1 1 i 2-1 i-5 1 1-1 3-1 5 2-1 4-1 b-1 5-1 2 5-1 1 1-1 k-1 5-5 1-3 2 4 2 2-5 1 2 1 1 6 3 6
 a-1 f 2 4 1 4-2 1 b-1 1c-2 9 e e ac-1 cv-2 j-1 1f 4 yi c gp 1 2fze 5m 4g-1 c-1 e 2-9 23-p 1-1 n k 2-8 l-1
 4u-x 2-33 2-1 1-2 2-2a 2-2 1-7a 1-1q b-5 1-n 7-1 2-7 c 2-3 2 4-1 d-1 2 8-1 9 5-2 c-2 8-2 2 1 4 6 3 6-2d
 1c-1x 5-7 2-4 2-9 3 1-1 3 2-9 6b-b 4 7v-1a 1-9 1-54 34-c 3-1y 1 3-h 1-c 3-b
emojicomponent/ecomp z 6 5-9 6ab 5x 17or 1c5y-p e3-4 14g-3 gw30-2n
emojimodifier/emod 2qrf-4
emojimodifierbase/ebase 7j1 63 g-3 2iyf 1o-2 2 2-2 39-1 2-a l-i 3 4-2 1-2 7 1 o 5l-1 4 l 4-1 4u-2 3-4 2b g-2
 9 b fz 2 8-7 6 9-9 2-2 1k 1p-1 1-1 1 h-2 1-c 6d-2 16-a
emojipresentation/epres 6xm-1 5p-3 3 2 eh-1 l-1 1e-b 17 j d 8-1 h-1 5-1 8 5 l 7-1 1 4 2 7 4-1 s z 1 4-2 1
 1p-2 o e nv-1 1f 4 2hf2 5m 5a 2-9 23-p 1 o k 2-4 1-2 l-1 4u-w c-8 1-1x 1-l c-16 4-4 c-g 3 3-1y 1 1-56 2-1q
 d-3 1-n i q-1 d 2e-2c 1c-1x 6 3-2 2-4 2-3 b-1 7-8 6b-b 4 7v-1a 1-9 1-54 34-c 3-1y 1 3-h 1-c 3-b
extendedpictographic/extpict 4p 4 68d c 60 m 2i-5 f-1 a7-1 c 4m p-a 4-2 5j 6f-1 a 9 1m-3 1-4 9 2 2-1 2 4 2
 1-1 2 3 3-1 8-2 5 1 5-b b-1 2 1-1 1 i 2-1 i-5 1 1-1 3-1 5 2-1 4-1 b-1 5-1 2 5-1 1 1-1 k-1 5-5 1-3 2 4 2 2-5
 1 2 1 1 6 3 6 a-1 f 2 4 1 4-2 1 b-1 1c-2 9 e e ac-1 cv-2 j-1 1f 4 yi c gp 1 2fze 13-3 2s-b f-1 f e-1 11-9
 34-1 c-1 e 2-9 k-1i r-e a k 2-8 1-3 9-m 6-57 2-33 2-1 1-2 2-2a 2-2 1-3 5-71 1-1q b-5 1-n 7-1 2-7 c 2-3 2
 4-1 d-1 2 8-1 9 5-2 c-2 8-2 2 1 4 6 3 6-2d 1c-1x 5-7 2-g 3 1-5 2-c 64-k r-3 1k-7 a-5 14-7 u-1 c-3 2-d 9-12
 c-1a 1-9 1-54 2g-7 e-41 74-sd
hexdigit/hex 1c-9 7-5 q-5 1eax-9 7-5 q-5
idcontinue/idc 1c-9 7-p 4 1-p 1b a 1 2 5-m 1-u 1-cp 4-b e-4 7 1 h-38 1-1 2-3 1 6-4 1 1-j 1-2a 1-3u 1-4 2-4l
 1-11 1-1 6-14 2-1 4-18 1 1-1 1-1 1-2 6-q 4-3 t-a 5-21 4-2t 1-7 2-9 1-i 2 g-1m 2-2s e-1h 4 2 2-19 i-r 4-a
 5-n 1-6 7-22 1-3k 2-9 1-i 1-7 2-1 2-l 1-6 1 3-3 2-8 2-1 2-3 8 4-1 1-4 2-b a 1 2-2 1-5 4-1 2-l 1-6 1-1 1-1
 1-1 2 1-4 4-1 2-2 3 7-3 1 7-f b-2 1-8 1-2 1-l 1-6 1-1 1-4 2-9 1-2 1-2 2 f-3 2-9 9-6 1-2 1-7 2-1 2-l 1-6 1-1
 1-4 2-8 2-1 2-2 5-4 4-1 1-4 2-9 1 g-1 1-5 3-2 1-3 3-1 1 1-1 3-1 3-2 3-b 4-4 3-2 1-3 2 6 e-9 g-c 1-2 1-m 1-f
 2-8 1-2 1-3 7-1 1-2 1-1 2-3 2-9 g-3 1-7 1-2 1-m 1-9 1-4 2-8 1-2 1-3 7-1 5-2 1-3 2-9 1-2 c-c 1-2 1-1e 1-2
 1-4 5-3 7-4 2-9 a-5 1-2 1-h 3-n 1-8 1 2-6 3 4-5 1 1-7 6-9 2-1 d-1l 5-e 1-9 13-1 1 1-4 1-n 1 1-m 2-4 1 1-6
 1-9 2-3 w n-1 6-9 b 1 1 4-9 1-z 4-j 1-h 1-z 9 1l-21 6-25 2-11 1 5 2-16 1-98 1-3 2-6 1 1-3 2-14 1-3 2-w 1-3
 2-6 1 1-3 2-e 1-1k 1-3 2-1u 2-2 9-8 e-f g-2d 2-5 3-h7 2-g 1-p 5-22 3-a 7-l 9-l b-j c-c 1-2 1-1 c-2b 3 4-1
 2-9 x-2 1-a 6-2g 7-16 5-1x a-u 1-b 4-b a-13 2-4 b-17 4-p 6-a 11-r 4-1q 1-s 2-a 6-9 d 8-d 1-1d f-24 3-9 h-8
 c-37 c-1j 8-9 3-1c 2-a 5-16 2-2 g-2 1-12 5-et 2-5 2-11 2-5 2-7 1 1 1 1-u 2-1g 1-6 1 3-2 1-6 3-3 2-5 4-c 5-2
 1-6 f-1 1d-1 j s d f-g 1c-c 4 3-b h 4 2-9 1 2-5 6 1 1 1-f 2-3 5-4 4 h-14 22f-6c 6-8 c-11 1 5 2-1j 7 f-n 9-6
 1-6 1-6 1-6 1-6 1-6 1-6 1-6 1-v ed-2 p-e 1-4 2-4 4-2d 2-6 1-2m 5-16 1-2l h-v 1c-f e8-533 1s-h3g 1v-19 2-7g
 3-r k-1b 4-9 1-36 11-8 2-2u 2-2a 4 e-1i 4 j-1f c-1x a-9 6-n 3 1-1c 2-z c-s 3-1s e-a 6-u 1-1i 9-d 2-9 6-m
 3-20 o-2 2-f 2-4 a-5 2-5 2-5 9-6 1-6 1-16 1-d 2-1 2-3e 1-1 2-9 6-8mb c-m 4-1c 6is-a5 2-2x 12-6 c-4 5-b 1-c
 1-4 1 1-1 1-1 1-2z x-a2 i-1r 2-1h 14-b 4-f g-f 3-1 o-2 w-4 1-3q j-9 7-p 4 1-p a-2h 3-5 2-5 2-5 2-2 z-b 1-p
 1-i 1-1 1-e 2-d y-3e 1x-1g 3s 3m-s 3-1c f v-v d-t 5-16 5-t 2-z 4-7 1-4 16-4d 2-9 6-z 4-z 4-13 8-1f c-a 1-e
 1-6 1-1 1-a 1-e 1-6 1-1 3-1f c-8m 9-l a-7 o-5 1-15 1-d 1s-5 2 1-17 1-1 3 2-m a-m 9-u 1t-i 1-1 a-l a-p 6-p
 12-1j 6-1 1s-3 1-1 5-7 1-2 1-s 2-2 4 w-s 3-s z-7 1-t p-1h a-l a-i d-h 32-20 1j-1e d-1e d-13 8-9 6-11 3-4
 1-m 6y-15 1-1 3-1 g-5 3-4 9-l 1-18 a 8-w v-l 16-k r-m 9-1y v-f 9-1n 7 d-o 7-9 6-1g 1-9 4-3 8-z 2 9-1w 4-3
 1-c 1 z-h 1-10 6-3 1q-6 1 1-3 1-e 1-9 7-1m 5-9 6-3 1-7 2-1 2-l 1-6 1-1 1-4 1-9 2-1 2-2 2 6 5-6 2-6 3-4 b-9
 1 2 1-11 1-9 1 2 1-3 1-7 d-1 t-22 5-9 4-3 u-1x 1 8-9 4m-1h 2-8 n-5 y-1s 3 b-9 12-1k 7-9 6-j s-q 2-e 4-9 6-6
 55-1m 2t-21 l-7 2 2-7 1-1 1-t 1-1 2-8 c-9 1y-7 2-19 2-7 1-1 r-1q 8 8-21 3 i-20 h 2d-7 2g-w f-9 6-8 1-18 1-8
 f-9 o-t 2-l 1-d 21-6 1-1 1-17 3 1-1 1-8 8-9 6-5 1-1 1-10 1-1 1-5 7-9 6-17 4-9 6-1 6m-m 9-g 1-14 3-4 d-a 2d
 27-pl 2u-33 5-5q c-8m 1s9-2o f-tr g-l a-32y 5-g6 5a1-1l 1c6-fs 7-u 1-9 6-26 1-9 6-t 2-4 b-1i 9-3 c-9 9-k
 5-i c0-18 3-9 5i-1r w-o 2-o 18-22 4-1k 7-g 1s-1 1-1 b-6 9-5p6 10-x 2n-36 d-pd e-1e 5y5-3 1-6 1-1 1-88 9 t-2
 2 e-4 7-az 1s4-2y 5-c 3-8 7-9 3-1 381-9 ee-19 2-m dc-1 1o-4 3-5 8-7 2-6 u-3 44-2 b-2 8-1 2 w-1 am-2c 1-1y
 1-1 2 2-1 2-3 1-b 1 1-6 1-1s 1-3 2-7 1-6 1-r 1-3 1-4 1 3-6 1-9g 1-o 1-o 1-u 1-o 1-u 1-o 1-u 1-o 1-u 1-o 1-7
 2-1d e8-1i 4-1d 8 e m-4 1-e uo-3l e-6 1i-1l 1-g 2-6 1-1 1-4 5-1p x 34-18 3-d 2-9 4 8x-u h-1l d2-15 5y-16
 5h-u 1-l 8-1 68-6 1-3 1-1 1-e 1-5g b-6 15-23 4-9 x2-3 1-q 1-1 1 2 1-9 1-3 1 1 6 4 1 1 1-2 1-1 1 2 1 1 1 1
 1-1 1 2-3 1-6 1-3 1-3 1 1-9 1-g 5-2 1-4 1-g 2lw-9 sm-wyn w-3dq 1-4gd 2-5rk f-h9 1wi-f1 15u-3t6 5-6jt
 upy-8qn e2m8-6n
ideographic/ideo 9hi-1 p-8 e-2 qt-533 1s-g73 hkw-a5 2-2x n4a d-4 9-5p6 10-x 2n-36 d-pd e-1e 68t-az f7o-wyn
 w-3dq 1-4gd 2-5rk f-h9 1wi-f1 15u-3t6 5-6jt upy-8qn
idstart/ids 1t-p 6-p 1b a 4 5-m 1-u 1-cp 4-b e-4 7 1 3l-4 1-1 2-3 1 6 1-2 1 1-j 1-2a 1-3u 8-4l 1-11 1-1 6-14
 2-1 1v-q 4-3 19-16 z-1 1-2q 1 f-1 7-1 a-2 2 g 1-t t-2g b o-w 9-1 4 5-l 4 9 3 n-o 7-a 5-n 1-6 g-15 1m-1h 3 i
 7-9 f-f 4-7 2-1 2-l 1-6 1 3-3 3 g d-1 1-2 e-1 a 8-5 4-1 2-l 1-6 1-1 1-1 1-1 v-3 1 j-2 g-8 1-2 1-l 1-6 1-1
 1-4 3 i f-1 n b-7 2-1 2-l 1-6 1-1 1-4 3 u-1 1-2 f h 1-5 3-2 1-3 3-1 1 1-1 3-1 3-2 3-b m 1g-7 1-2 1-m 1-f 3
 q-2 1-1 2-1 u 4-7 1-2 1-m 1-9 1-4 3 u-2 1-1 f-1 h-8 1-2 1-14 2 g 5-2 8-2 o-5 5-h 3-n 1-8 1 2-6 1m-1b 1-1
 c-6 1m-1 1 1-4 1-n 1 1-9 1-1 9 2-4 1 l-3 w 1r-7 1-z r-4 37-16 k g-5 4-3 3 3-1 7-2 4-c c h-11 1 5 2-16 1-98
 1-3 2-6 1 1-3 2-14 1-3 2-w 1-3 2-6 1 1-3 2-e 1-1k 1-3 2-1u 11-f g-2d 2-5 3-h7 2-g 1-p 5-22 3-a 7-h d-i e-h
 e-c 1-2 f-1f z 4 1v-2g 7-14 1 5-1x a-u 1d-t 2-4 b-17 4-p 1i-m 9-1g 2a 2l-1a h-7 1i-t d-1 a-17 q-z 15-2 a-z
 2-a 5-16 2-2 15-3 1-5 1-1 3 5-5b 1s-7p 2-5 2-11 2-5 2-7 1 1 1 1-u 2-1g 1-6 1 3-2 1-6 3-3 2-5 4-c 5-2 1-6 38
 d f-g 2q 4 2-9 1 2-5 6 1 1 1-f 2-3 5-4 4 h-14 22f-6c 6-3 3-1 c-11 1 5 2-1j 7 g-m 9-6 1-6 1-6 1-6 1-6 1-6
 1-6 1-6 fa-2 p-8 7-4 2-4 4-2d 4-4 1-2h 1-3 5-16 1-2l h-v 1c-f e8-533 1s-h3g 1v-19 2-7g 3-f a-1 k-1a g-u
 2-27 13-8 2-2u 2-2a 4 e-g 1-2 1-3 1-m t-1f e-1d 1q-5 3 1-1 b-r a-m p-s 7-1a s g-4 1-9 a-4 1-14 n-2 1-7 k-m
 3 3-1d 1 3-1 2-4 2 1 o-2 2-a 7-2 c-5 2-5 2-5 9-6 1-6 1-16 1-d 2-1 2-36 t-8mb c-m 4-1c 6is-a5 2-2x 12-6 c-4
 5 1-9 1-c 1-4 1 1-1 1-1 1-2z x-a2 i-1r 2-1h 14-b 38-4 1-3q 10-p 6-p b-2g 3-5 2-5 2-5 2-2 z-b 1-p 1-i 1-1
 1-e 2-d y-3e 1x-1g 7f-s 3-1c 1b-v d-t 5-11 a-t 2-z 4-7 1-4 16-4d i-z 4-z 4-13 8-1f c-a 1-e 1-6 1-1 1-a 1-e
 1-6 1-1 3-1f c-8m 9-l a-7 o-5 1-15 1-d 1s-5 2 1-17 1-1 3 2-m a-m 9-u 1t-i 1-1 a-l a-p 6-p 12-1j 6-1 1s f-3
 1-2 1-s 16-s 3-s z-7 1-r r-1h a-l a-i d-h 32-20 1j-1e d-1e d-z 12-r 9-m 6y-15 6-1 g-5 h-l h-s a 8-l 16-h
 1a-k r-m c-1g 1l-1 2 d-18 w-o q-z t 2 8-y 3 c-1b e-3 l 1 z-h 1-o j-1 1r-6 1 1-3 1-e 1-9 7-1a 12-7 2-1 2-l
 1-6 1-1 1-4 3 i c-4 u-9 1 2 1-11 1 p 1 18-1g i-3 k-2 u-1b k-1 1 54-1a 15-3 10-1b k 1n-16 d 1z-q 11-6 55-17
 38-1r v-7 2 2-7 1-1 1-n f 1 2m-7 2-12 g 1 s a-13 7 l b-19 j i-20 h 51-w v-8 1-10 h 1d-t 34-6 1-1 1-11 l p-5
 1-1 1-v e n-17 l 6m-i f 1-c 1-x 3g 27-pl 2u-33 5-5q c-8m 1s9-2o f-tr h-5 p-32y 5-g6 5a1-t 1cy-fs 7-u h-26
 h-t i-1b g-3 v-k 5-i c0-18 5v-1r w-o 2-o 18-22 5 1u-c 1s-1 1 e-4 9-5p6 10-x 2n-36 d-pd e-1e 5y5-3 1-6 1-1
 1-88 9 t-2 2 e-4 7-az 1s4-2y 5-c 3-8 7-9 4me-2c 1-1y 1-1 2 2-1 2-3 1-b 1 1-6 1-1s 1-3 2-7 1-6 1-r 1-3 1-4 1
 3-6 1-9g 1-o 1-o 1-u 1-o 1-u 1-o 1-u 1-o 1-u 1-o 1-7 1f8-3l e-6 1i-1e 1c-1p 42-18 a-6 g 8x-t i-17 dg-r 6c-t
 2 5r-u 1-2 1-1 1-6 2-4 9-1 68-6 1-3 1-1 1-e 1-5g 1n-1v 7 xg-3 1-q 1-1 1 2 1-9 1-3 1 1 6 4 1 1 1-2 1-1 1 2 1
 1 1 1 1-1 1 2-3 1-6 1-3 1-3 1 1-9 1-g 5-2 1-4 1-g 3es-wyn w-3dq 1-4gd 2-5rk f-h9 1wi-f1 15u-3t6 5-6jt
 upy-8qn
lowercase/lower 2p-p 1b a 4 10-n 1-7 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1-1 1 1 1 1 1 1 1
 1-1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 1 1-2 2 1 2 3-1 4 2 3-2 2 2 1 1 2 1-1 1 2 3 1 2-1 2-2 6
 2 2 1 1 1 1 1 1 1 1-1 1 1 1 1 1 1 1 1 1-1 2 1 3 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1-6
 2 2-1 1 4 1 1 1 1-1w 2-y 7-1 u-4 2o 17 1 3 2-3 i r-y 1-1 3-2 1 1 1 1 1 1 1 1 1 1 1 1-4 1 2 2-1 1f-1b 1 1 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 9 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 1 1 1 1 1 1-1 1 1 1 1 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 14 7-14 2-1 283-16
 1-3 l4-5 1oi-8 1 39-5b 1t 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1-8 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1-8 8-5 a-7 8-7 8-5 a-7 8-7 8-d 2-7 8-7 8-7 8-4 1-1
 6 3-2 1-1 8-3 2-1 8-7 a-2 1-1 3d d g-f 2y 3-1 3 r 4 4 2-1 8-3 4 x-f 4 nf-p 1fq-1b 1 3-1 1 1 1 4 1-1 1-7 3 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1-1 7 1 4
 c-11 1 5 nwz 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 j 1 1 1 1 1 1 1 1 1 1 1 1 1-2 3p 1 1 1 1 1 1-2 1 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1-9 1 1 2 1 1 1 1 4 1 2 1-2 1 1 1 1 1 1 1 1 1 1 5 5
 1 1 1 1 1 1 1 4 1 2 1 1 1 1 1 1 1 l-3 1 1-2 mt-16 1-d 6-27 fnk-6 c-4 tl-p y5-13 3s-z 4b-a 1-e 1-6 1-1 cj
 2-2 1-15 1-d zk-1e 3h-l 27u-v gw0-v 1n-o k06-p q-6 1-h q-p q-3 1 1-6 1-a q-p q-p q-p q-p q-p q-p q-p q-p
 q-s r-o 1-5 q-o 1-5 q-o 1-5 q-o 1-5 q-o 1-5 1 1f8-9 1-1g 1-6 1 1-1 1-2 1-l 1 1 1 1-2 1 1 1 1 1 1 1 g-6
 1i-1e 1c-1p 1pw-x
math 17 g-2 v t 1 19 4 11 v k8-2 2 q-1 2-2 en-2 559 r-2 b 3 d e-3 l-4 b-4 1t-c 4 3-1 4-4 i 4 2-9 1 2-5 6 3-1
 2-1 1-2 1-5 3-d 1 1w-n 1-5 1-1 4-1 4-v 1 6-1 e-7f 8-3 k-1 2i u-q 1 o b-6 cd-1 c-9 4-5 4-1 2-1 3-4 e 1 2-5
 b-7 5-1 1l 1 t-3 9-2 9c-1r 74-e7 1c-k 2-5 1524 mv-5 1 4i g-2 t 1 t 1 3n 6-3 2ox-1 126l-2 g-d zm-2c 1-1y 1-1
 2 2-1 2-3 1-b 1 1-6 1-1s 1-3 2-7 1-6 1-r 1-3 1-4 1 3-6 1-9g 1-83 2-1d lc-s 3qb-3 1-q 1-1 1 2 1-9 1-3 1 1 6
 4 1 1 1-2 1-1 1 2 1 1 1 1 1-1 1 2-3 1-6 1-3 1-3 1 1-9 1-g 5-2 1-4 1-g 1g-1 1rd l-e 5s-8
noncharactercodepoint/nchar 1e4w-v em-1 1eke-1 1eke-1 1eke-1 1eke-1 1eke-1 1eke-1 1eke-1 1eke-1 1eke-1
 1eke-1 1eke-1 1eke-1 1eke-1 1eke-1 1eke-1 1eke-1
quotationmark/qmark y 4 3n f 670-7 p-1 2rr cp-3 d-2 14pt-3 59 4 2i-1
uppercase/upper 1t-p 2t-m 1-6 x 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 1 1 1 1 1 1 1 2 1 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1-1 1 1 3-1 1 1-1 1-2 2-3 1-1 1-2 3-1 1-1 1 1 1-1 1 2 1-1 1-2 1 1-1
 3 7 2 2 2 1 1 1 1 1 1 1 2 1 1 1 1 1 1 1 1 2 2 1-2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
 7-1 1-1 2 1-3 1 1 1 1 81 1 3 8 6 1-2 1 1-1 1-g 1-8 z 2-2 3 1 1 1 1 1 1 1 1 1 1 1 5 2 1-1 2-1e 1c 1 1 1 1 1
 1 1 1 1 1 1 1 1 1 1 1 9 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1-1 1 1 1 1 1 1 2 1 1 1 1 1 1 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2-11 289-11 1 5 k2-2d 1oz
 6-16 2-2 8w 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 9 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 9-7 8-5 a-7 8-7 8-5 b 1 1 1 8-7 20-3 c-3 c-3 c-4 b-3 7a 4 3-2 2-2
 2 3-4 6 1 1 1-3 2-3 a-1 5 q-f j mq-p 1f4-1b 1c 1-2 2 1 1 1-3 1 2 8-2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 8 1 4 nyl 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
 1 1 1 j 1 1 1 1 1 1 1 1 1 1 1 1 1 3r 1 1 1 1 1 1 3 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
 1 1 a 1 1-1 1 1 1 1 4 1 2 1 3 1 1 1 1 1 1 1 1 1 1-4 1-4 1 1 1 1 1 1 1 1-3 1 1-1 1 1 1 1 1 1 1 1-1 4 i om-1
 gj7-p xx-13 3s-z 4c-a 1-e 1-6 1-1 1d6-1e 4d-l 27u-v gw0-v 1s-o k07-p q-p q-p q 1-1 2 2-1 2-3 1-7 q-p q-1
 1-3 2-7 1-6 r-1 1-3 1-4 1 3-6 r-p q-p q-p q-p q-p q-p u-o x-o x-o x-o x-o x 1h1 7 1 2 3 m 1 1 1 3 1 1 1 1 1
 1 1vl-x 1la-p 6-p 6-p
whitespace/space 9-4 i 2s q 4bj 1vj-a t-1 5 1b 334
xidcontinue/xidc 1c-9 7-p 4 1-p 1b a 1 2 5-m 1-u 1-cp 4-b e-4 7 1 h-38 1-1 3-2 1 6-4 1 1-j 1-2a 1-3u 1-4
 2-4l 1-11 1-1 6-14 2-1 4-18 1 1-1 1-1 1-2 6-q 4-3 t-a 5-21 4-2t 1-7 2-9 1-i 2 g-1m 2-2s e-1h 4 2 2-19 i-r
 4-a 5-n 1-6 7-22 1-3k 2-9 1-i 1-7 2-1 2-l 1-6 1 3-3 2-8 2-1 2-3 8 4-1 1-4 2-b a 1 2-2 1-5 4-1 2-l 1-6 1-1
 1-1 1-1 2 1-4 4-1 2-2 3 7-3 1 7-f b-2 1-8 1-2 1-l 1-6 1-1 1-4 2-9 1-2 1-2 2 f-3 2-9 9-6 1-2 1-7 2-1 2-l 1-6
 1-1 1-4 2-8 2-1 2-2 5-4 4-1 1-4 2-9 1 g-1 1-5 3-2 1-3 3-1 1 1-1 3-1 3-2 3-b 4-4 3-2 1-3 2 6 e-9 g-c 1-2 1-m
 1-f 2-8 1-2 1-3 7-1 1-2 1-1 2-3 2-9 g-3 1-7 1-2 1-m 1-9 1-4 2-8 1-2 1-3 7-1 5-2 1-3 2-9 1-2 c-c 1-2 1-1e
 1-2 1-4 5-3 7-4 2-9 a-5 1-2 1-h 3-n 1-8 1 2-6 3 4-5 1 1-7 6-9 2-1 d-1l 5-e 1-9 13-1 1 1-4 1-n 1 1-m 2-4 1
 1-6 1-9 2-3 w n-1 6-9 b 1 1 4-9 1-z 4-j 1-h 1-z 9 1l-21 6-25 2-11 1 5 2-16 1-98 1-3 2-6 1 1-3 2-14 1-3 2-w
 1-3 2-6 1 1-3 2-e 1-1k 1-3 2-1u 2-2 9-8 e-f g-2d 2-5 3-h7 2-g 1-p 5-22 3-a 7-l 9-l b-j c-c 1-2 1-1 c-2b 3
 4-1 2-9 x-2 1-a 6-2g 7-16 5-1x a-u 1-b 4-b a-13 2-4 b-17 4-p 6-a 11-r 4-1q 1-s 2-a 6-9 d 8-d 1-1d f-24 3-9
 h-8 c-37 c-1j 8-9 3-1c 2-a 5-16 2-2 g-2 1-12 5-et 2-5 2-11 2-5 2-7 1 1 1 1-u 2-1g 1-6 1 3-2 1-6 3-3 2-5 4-c
 5-2 1-6 f-1 1d-1 j s d f-g 1c-c 4 3-b h 4 2-9 1 2-5 6 1 1 1-f 2-3 5-4 4 h-14 22f-6c 6-8 c-11 1 5 2-1j 7 f-n
 9-6 1-6 1-6 1-6 1-6 1-6 1-6 1-6 1-v ed-2 p-e 1-4 2-4 4-2d 2-1 2-2 1-2m 5-16 1-2l h-v 1c-f e8-533 1s-h3g
 1v-19 2-7g 3-r k-1b 4-9 1-36 11-8 2-2u 2-2a 4 e-1i 4 j-1f c-1x a-9 6-n 3 1-1c 2-z c-s 3-1s e-a 6-u 1-1i 9-d
 2-9 6-m 3-20 o-2 2-f 2-4 a-5 2-5 2-5 9-6 1-6 1-16 1-d 2-1 2-3e 1-1 2-9 6-8mb c-m 4-1c 6is-a5 2-2x 12-6 c-4
 5-b 1-c 1-4 1 1-1 1-1 1-2z x-3u 6-61 i-1r 2-1h 14-9 6-f g-f 3-1 o-2 x 1 3 1 1 1 1-3h j-9 7-p 4 1-p a-2h 3-5
 2-5 2-5 2-2 z-b 1-p 1-i 1-1 1-e 2-d y-3e 1x-1g 3s 3m-s 3-1c f v-v d-t 5-16 5-t 2-z 4-7 1-4 16-4d 2-9 6-z
 4-z 4-13 8-1f c-a 1-e 1-6 1-1 1-a 1-e 1-6 1-1 3-1f c-8m 9-l a-7 o-5 1-15 1-d 1s-5 2 1-17 1-1 3 2-m a-m 9-u
 1t-i 1-1 a-l a-p 6-p 12-1j 6-1 1s-3 1-1 5-7 1-2 1-s 2-2 4 w-s 3-s z-7 1-t p-1h a-l a-i d-h 32-20 1j-1e d-1e
 d-13 8-9 6-11 3-4 1-m 6y-15 1-1 3-1 g-5 3-4 9-l 1-18 a 8-w v-l 16-k r-m 9-1y v-f 9-1n 7 d-o 7-9 6-1g 1-9
 4-3 8-z 2 9-1w 4-3 1-c 1 z-h 1-10 6-3 1q-6 1 1-3 1-e 1-9 7-1m 5-9 6-3 1-7 2-1 2-l 1-6 1-1 1-4 1-9 2-1 2-2 2
 6 5-6 2-6 3-4 b-9 1 2 1-11 1-9 1 2 1-3 1-7 d-1 t-22 5-9 4-3 u-1x 1 8-9 4m-1h 2-8 n-5 y-1s 3 b-9 12-1k 7-9
 6-j s-q 2-e 4-9 6-6 55-1m 2t-21 l-7 2 2-7 1-1 1-t 1-1 2-8 c-9 1y-7 2-19 2-7 1-1 r-1q 8 8-21 3 i-20 h 2d-7
 2g-w f-9 6-8 1-18 1-8 f-9 o-t 2-l 1-d 21-6 1-1 1-17 3 1-1 1-8 8-9 6-5 1-1 1-10 1-1 1-5 7-9 6-17 4-9 6-1
 6m-m 9-g 1-14 3-4 d-a 2d 27-pl 2u-33 5-5q c-8m 1s9-2o f-tr g-l a-32y 5-g6 5a1-1l 1c6-fs 7-u 1-9 6-26 1-9
 6-t 2-4 b-1i 9-3 c-9 9-k 5-i c0-18 3-9 5i-1r w-o 2-o 18-22 4-1k 7-g 1s-1 1-1 b-6 9-5p6 10-x 2n-36 d-pd e-1e
 5y5-3 1-6 1-1 1-88 9 t-2 2 e-4 7-az 1s4-2y 5-c 3-8 7-9 3-1 381-9 ee-19 2-m dc-1 1o-4 3-5 8-7 2-6 u-3 44-2
 b-2 8-1 2 w-1 am-2c 1-1y 1-1 2 2-1 2-3 1-b 1 1-6 1-1s 1-3 2-7 1-6 1-r 1-3 1-4 1 3-6 1-9g 1-o 1-o 1-u 1-o
 1-u 1-o 1-u 1-o 1-u 1-o 1-7 2-1d e8-1i 4-1d 8 e m-4 1-e uo-3l e-6 1i-1l 1-g 2-6 1-1 1-4 5-1p x 34-18 3-d
 2-9 4 8x-u h-1l d2-15 5y-16 5h-u 1-l 8-1 68-6 1-3 1-1 1-e 1-5g b-6 15-23 4-9 x2-3 1-q 1-1 1 2 1-9 1-3 1 1 6
 4 1 1 1-2 1-1 1 2 1 1 1 1 1-1 1 2-3 1-6 1-3 1-3 1 1-9 1-g 5-2 1-4 1-g 2lw-9 sm-wyn w-3dq 1-4gd 2-5rk f-h9
 1wi-f1 15u-3t6 5-6jt upy-8qn e2m8-6n
xidstart/xids 1t-p 6-p 1b a 4 5-m 1-u 1-cp 4-b e-4 7 1 3l-4 1-1 3-2 1 6 1-2 1 1-j 1-2a 1-3u 8-4l 1-11 1-1
 6-14 2-1 1v-q 4-3 19-16 z-1 1-2q 1 f-1 7-1 a-2 2 g 1-t t-2g b o-w 9-1 4 5-l 4 9 3 n-o 7-a 5-n 1-6 g-15
 1m-1h 3 i 7-9 f-f 4-7 2-1 2-l 1-6 1 3-3 3 g d-1 1-2 e-1 a 8-5 4-1 2-l 1-6 1-1 1-1 1-1 v-3 1 j-2 g-8 1-2 1-l
 1-6 1-1 1-4 3 i f-1 n b-7 2-1 2-l 1-6 1-1 1-4 3 u-1 1-2 f h 1-5 3-2 1-3 3-1 1 1-1 3-1 3-2 3-b m 1g-7 1-2
 1-m 1-f 3 q-2 1-1 2-1 u 4-7 1-2 1-m 1-9 1-4 3 u-2 1-1 f-1 h-8 1-2 1-14 2 g 5-2 8-2 o-5 5-h 3-n 1-8 1 2-6
 1m-1b 1 d-6 1m-1 1 1-4 1-n 1 1-9 1 a 2-4 1 l-3 w 1r-7 1-z r-4 37-16 k g-5 4-3 3 3-1 7-2 4-c c h-11 1 5 2-16
 1-98 1-3 2-6 1 1-3 2-14 1-3 2-w 1-3 2-6 1 1-3 2-e 1-1k 1-3 2-1u 11-f g-2d 2-5 3-h7 2-g 1-p 5-22 3-a 7-h d-i
 e-h e-c 1-2 f-1f z 4 1v-2g 7-14 1 5-1x a-u 1d-t 2-4 b-17 4-p 1i-m 9-1g 2a 2l-1a h-7 1i-t d-1 a-17 q-z 15-2
 a-z 2-a 5-16 2-2 15-3 1-5 1-1 3 5-5b 1s-7p 2-5 2-11 2-5 2-7 1 1 1 1-u 2-1g 1-6 1 3-2 1-6 3-3 2-5 4-c 5-2
 1-6 38 d f-g 2q 4 2-9 1 2-5 6 1 1 1-f 2-3 5-4 4 h-14 22f-6c 6-3 3-1 c-11 1 5 2-1j 7 g-m 9-6 1-6 1-6 1-6 1-6
 1-6 1-6 1-6 fa-2 p-8 7-4 2-4 4-2d 6-2 1-2h 1-3 5-16 1-2l h-v 1c-f e8-533 1s-h3g 1v-19 2-7g 3-f a-1 k-1a g-u
 2-27 13-8 2-2u 2-2a 4 e-g 1-2 1-3 1-m t-1f e-1d 1q-5 3 1-1 b-r a-m p-s 7-1a s g-4 1-9 a-4 1-14 n-2 1-7 k-m
 3 3-1d 1 3-1 2-4 2 1 o-2 2-a 7-2 c-5 2-5 2-5 9-6 1-6 1-16 1-d 2-1 2-36 t-8mb c-m 4-1c 6is-a5 2-2x 12-6 c-4
 5 1-9 1-c 1-4 1 1-1 1-1 1-2z x-3u 6-61 i-1r 2-1h 14-9 3b 1 3 1 1 1 1-3h 10-p 6-p b-1j 2-u 3-5 2-5 2-5 2-2
 z-b 1-p 1-i 1-1 1-e 2-d y-3e 1x-1g 7f-s 3-1c 1b-v d-t 5-11 a-t 2-z 4-7 1-4 16-4d i-z 4-z 4-13 8-1f c-a 1-e
 1-6 1-1 1-a 1-e 1-6 1-1 3-1f c-8m 9-l a-7 o-5 1-15 1-d 1s-5 2 1-17 1-1 3 2-m a-m 9-u 1t-i 1-1 a-l a-p 6-p
 12-1j 6-1 1s f-3 1-2 1-s 16-s 3-s z-7 1-r r-1h a-l a-i d-h 32-20 1j-1e d-1e d-z 12-r 9-m 6y-15 6-1 g-5 h-l
 h-s a 8-l 16-h 1a-k r-m c-1g 1l-1 2 d-18 w-o q-z t 2 8-y 3 c-1b e-3 l 1 z-h 1-o j-1 1r-6 1 1-3 1-e 1-9 7-1a
 12-7 2-1 2-l 1-6 1-1 1-4 3 i c-4 u-9 1 2 1-11 1 p 1 18-1g i-3 k-2 u-1b k-1 1 54-1a 15-3 10-1b k 1n-16 d
 1z-q 11-6 55-17 38-1r v-7 2 2-7 1-1 1-n f 1 2m-7 2-12 g 1 s a-13 7 l b-19 j i-20 h 51-w v-8 1-10 h 1d-t
 34-6 1-1 1-11 l p-5 1-1 1-v e n-17 l 6m-i f 1-c 1-x 3g 27-pl 2u-33 5-5q c-8m 1s9-2o f-tr h-5 p-32y 5-g6
 5a1-t 1cy-fs 7-u h-26 h-t i-1b g-3 v-k 5-i c0-18 5v-1r w-o 2-o 18-22 5 1u-c 1s-1 1 e-4 9-5p6 10-x 2n-36
 d-pd e-1e 5y5-3 1-6 1-1 1-88 9 t-2 2 e-4 7-az 1s4-2y 5-c 3-8 7-9 4me-2c 1-1y 1-1 2 2-1 2-3 1-b 1 1-6 1-1s
 1-3 2-7 1-6 1-r 1-3 1-4 1 3-6 1-9g 1-o 1-o 1-u 1-o 1-u 1-o 1-u 1-o 1-u 1-o 1-7 1f8-3l e-6 1i-1e 1c-1p 42-18
 a-6 g 8x-t i-17 dg-r 6c-t 2 5r-u 1-2 1-1 1-6 2-4 9-1 68-6 1-3 1-1 1-e 1-5g 1n-1v 7 xg-3 1-q 1-1 1 2 1-9 1-3
 1 1 6 4 1 1 1-2 1-1 1 2 1 1 1 1 1-1 1 2-3 1-6 1-3 1-3 1 1-9 1-g 5-2 1-4 1-g 3es-wyn w-3dq 1-4gd 2-5rk f-h9
 1wi-f1 15u-3t6 5-6jt upy-8qn
"""
