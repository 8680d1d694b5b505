(* Allocates in the innermost frame of a deep recursion: deep FRAMES BLOCKS. *)

let last = ref []

let rec allocate n sum =
  if n = 0 then sum
  else begin
    last := [ n ];
    allocate (n - 1) (sum + List.length !last)
  end

let rec descend frames blocks =
  if frames = 0 then allocate blocks 0 else 1 + descend (frames - 1) blocks

let () =
  let argument n = int_of_string Sys.argv.(n) in
  Printf.printf "%d\n" (descend (argument 1) (argument 2))
